package ensemble

import "time"

// Rhythm lets periodic tasks of one server run at the same moments. Waking an idle
// process costs much more than such a task does. It is the time that the moments are
// counted from. It differs between servers, because tasks that decide about elections
// must not run on all servers at the same time.
type Rhythm struct{ Began time.Time }

// Next returns the time until a task that runs every d is due.
func (r Rhythm) Next(d time.Duration) time.Duration { return d - time.Since(r.Began)%d }
