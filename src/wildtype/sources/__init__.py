"""Where organisms and measurements come from: publishers' files, and organisms simulated by flux balance."""
