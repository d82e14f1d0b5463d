"""From a price back to noise, rate or steps (`noise`), for several events (`joint`), for a search (`selection`)."""
