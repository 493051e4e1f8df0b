package lockbench

import (
	"fmt"
	"strings"
	"time"
)

// Timeline is a list of events, in order.
type Timeline struct {
	Name   string
	Events []Event
	// Both reports that two clients held the lock at once.
	Both bool

	began time.Time
}

// Event is one line of a timeline.
type Event struct {
	At   float64 // seconds
	Who  string
	What string
}

func newTimeline(name string) *Timeline { return &Timeline{Name: name, began: time.Now()} }

// note adds an event at the current time.
func (t *Timeline) note(who, format string, args ...any) {
	t.Events = append(t.Events, Event{time.Since(t.began).Seconds(), who, fmt.Sprintf(format, args...)})
}

// String returns the timeline as text.
func (t *Timeline) String() string {
	var b strings.Builder
	for _, e := range t.Events {
		fmt.Fprintf(&b, "%7.3f s  %-8s  %s\n", e.At, e.Who, e.What)
	}
	return b.String()
}

// failovers returns all timelines in Markdown.
func (r *Report) failovers() string {
	var b strings.Builder
	for _, t := range r.Failovers {
		fmt.Fprintf(&b, "%s:\n\n```\n%s```\n\n", t.Name, t.String())
	}
	return b.String()
}
