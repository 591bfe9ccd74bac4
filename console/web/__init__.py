"""The console in a browser: who may enter (`doors`), what they are handed (`pages`), and the server itself."""
