"""From one schema to the next: steps and the plan."""
