"""What the documentation takes from the code and from the committed records when the site is built."""
