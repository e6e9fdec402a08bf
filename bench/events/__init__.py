"""What events cost, and how soon and in what number they are heard."""
