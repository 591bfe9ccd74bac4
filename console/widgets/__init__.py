"""Parts that screens are made of; they show what they are given and post messages."""
