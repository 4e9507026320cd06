# quern-conform, its cases, and the backend of seeded bugs.
