"""Results for people: tables, figures and the HTML report."""
