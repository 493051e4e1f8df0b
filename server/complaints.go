package server

import (
	"fmt"
	"log/slog"
	"sync"
	"time"
)

const (
	// complaintEvery is how often a complaint of one kind is logged. A client decides how
	// often it does what it is refused for.
	complaintEvery = 10 * time.Second
	// maxLogged is how many bytes of what a client has sent stand in a line of the log.
	maxLogged = 256
)

// complaints logs what the server refuses its clients: the first of a kind at once, the
// others every complaintEvery as one line that counts them. The message is the kind.
type complaints struct {
	log *slog.Logger

	mu    sync.Mutex
	kinds map[string]*complaint
}

// complaint is what is known of one kind.
type complaint struct {
	until int64 // clock: from then on the next one is logged
	more  int   // not logged since the last line
	args  []any // of the latest of those
}

// warn logs a complaint, or counts it. now is the clock.
func (k *complaints) warn(now int64, msg string, args ...any) {
	for i, v := range args {
		switch v := v.(type) {
		case string:
			args[i] = clip(v, maxLogged)
		case error:
			args[i] = clip(v.Error(), maxLogged)
		}
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.kinds == nil {
		k.kinds = make(map[string]*complaint)
	}
	this := k.kinds[msg]
	if this == nil {
		this = new(complaint)
		k.kinds[msg] = this
	}
	if now < this.until {
		this.more++
		this.args = args
		return
	}
	this.until = now + int64(complaintEvery)
	k.write(msg, this, args)
}

// write logs args and how many others there were; k.mu is held.
func (k *complaints) write(msg string, this *complaint, args []any) {
	if this.more > 0 {
		args = append(args, "others", this.more, "within", complaintEvery)
	}
	this.more, this.args = 0, nil
	k.log.Warn(msg, args...)
}

// catchUp logs what has been counted and whose time has come.
func (k *complaints) catchUp(now int64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for msg, this := range k.kinds {
		if this.more > 0 && now >= this.until {
			this.more-- // the one that stands in the line
			this.until = now + int64(complaintEvery)
			k.write(msg, this, this.args)
		}
	}
}

// complain logs that the client of c is refused something.
func (c *conn) complain(msg string, args ...any) {
	c.s.complaints.warn(c.s.clock(), msg, append([]any{"client", c.nc.RemoteAddr(), "session", sessionID(c.sid)}, args...)...)
}

// clip shortens s to about most bytes.
func clip(s string, most int) string {
	if len(s) <= most {
		return s
	}
	return fmt.Sprintf("%.*s… (%d bytes)", most, s[:most], len(s))
}
