package limits

import (
	"fmt"
	"log/slog"
	"sync"
	"time"
)

const (
	// ComplaintEvery is how often a complaint of one kind is logged. Without a limit, a
	// client could flood the log by repeating a refused request.
	ComplaintEvery = 10 * time.Second
	// MaxLogged bounds how many bytes of client input a log line contains.
	MaxLogged = 256
)

// Complaints logs requests that the server refuses: the first complaint of a kind
// immediately, then one line every ComplaintEvery with the number of the others. The
// message is the kind.
type Complaints struct {
	log *slog.Logger

	mu    sync.Mutex
	kinds map[string]*complaint
}

// NewComplaints returns Complaints that write to log.
func NewComplaints(log *slog.Logger) *Complaints {
	return &Complaints{log: log, kinds: make(map[string]*complaint)}
}

// complaint is the state of one kind.
type complaint struct {
	until int64 // clock: the next one is logged from then on
	more  int   // number not logged since the last line
	args  []any // of the latest of these
}

// Warn logs or counts a complaint. now is the clock.
func (k *Complaints) Warn(now int64, msg string, args ...any) {
	for i, v := range args {
		switch v := v.(type) {
		case string:
			args[i] = Clip(v, MaxLogged)
		case error:
			args[i] = Clip(v.Error(), MaxLogged)
		}
	}
	k.mu.Lock()
	defer k.mu.Unlock()
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
	this.until = now + int64(ComplaintEvery)
	k.write(msg, this, args)
}

// write logs args and the number of other complaints; k.mu is held.
func (k *Complaints) write(msg string, this *complaint, args []any) {
	if this.more > 0 {
		args = append(args, "others", this.more, "within", ComplaintEvery)
	}
	this.more, this.args = 0, nil
	k.log.Warn(msg, args...)
}

// CatchUp logs the counted complaints that are due.
func (k *Complaints) CatchUp(now int64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for msg, this := range k.kinds {
		if this.more > 0 && now >= this.until {
			this.more-- // the one that the line shows
			this.until = now + int64(ComplaintEvery)
			k.write(msg, this, this.args)
		}
	}
}

// Clip shortens s to about most bytes.
func Clip(s string, most int) string {
	if len(s) <= most {
		return s
	}
	return fmt.Sprintf("%.*s… (%d bytes)", most, s[:most], len(s))
}
