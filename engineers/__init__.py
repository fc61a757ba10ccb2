"""Engineers read a report of what a trainee did and propose the next environment config."""
