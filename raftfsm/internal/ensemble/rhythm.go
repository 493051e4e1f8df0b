package ensemble

import "time"

// Rhythm lets periodic tasks of one server run at the same moments. Waking an idle
// process costs much more than such a task does. It is the time that the moments are
// counted from, and differs between servers: tasks that decide about elections must not
// run on all of them at once.
type Rhythm struct{ Began time.Time }

// Next returns the time until a task that runs every d is due.
func (r Rhythm) Next(d time.Duration) time.Duration { return d - time.Since(r.Began)%d }
