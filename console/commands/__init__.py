"""The commands of `gonogo`, one module for each subject; `console.cli` imports the one that is asked for."""
