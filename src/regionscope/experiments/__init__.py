"""The papers' figures as experiments: frozen settings, what was found, and a verdict by a rule written down before."""
