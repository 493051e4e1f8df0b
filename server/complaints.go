package server

import (
	"fmt"
	"log/slog"
	"sync"
	"time"
)

const (
	// complaintEvery is how often a complaint of one kind is logged. Without a limit, a
	// client could flood the log by repeating a refused request.
	complaintEvery = 10 * time.Second
	// maxLogged bounds how many bytes of client input a log line contains.
	maxLogged = 256
)

// complaints logs what the server refuses its clients: the first complaint of a kind at
// once, then one line every complaintEvery that counts the others. The message is the
// kind.
type complaints struct {
	log *slog.Logger

	mu    sync.Mutex
	kinds map[string]*complaint
}

// complaint is the state of one kind.
type complaint struct {
	until int64 // clock: the next one is logged from then on
	more  int   // number not logged since the last line
	args  []any // of the latest of these
}

// warn logs or counts a complaint. now is the clock.
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

// write logs args and the number of other complaints; k.mu is held.
func (k *complaints) write(msg string, this *complaint, args []any) {
	if this.more > 0 {
		args = append(args, "others", this.more, "within", complaintEvery)
	}
	this.more, this.args = 0, nil
	k.log.Warn(msg, args...)
}

// catchUp logs the counted complaints that are due.
func (k *complaints) catchUp(now int64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for msg, this := range k.kinds {
		if this.more > 0 && now >= this.until {
			this.more-- // the one that the line shows
			this.until = now + int64(complaintEvery)
			k.write(msg, this, this.args)
		}
	}
}

// complain logs that the server refuses something to the client of c.
func (c *conn) complain(msg string, args ...any) {
	c.s.complaints.warn(c.s.clock(), msg, append([]any{"client", c.nc.RemoteAddr(), "session", sessionID(c.session.id)}, args...)...)
}

// clip shortens s to about most bytes.
func clip(s string, most int) string {
	if len(s) <= most {
		return s
	}
	return fmt.Sprintf("%.*s… (%d bytes)", most, s[:most], len(s))
}
