package server

import (
	"github.com/zkgo/zkgo/internal/limits"
	"github.com/zkgo/zkgo/internal/ops/fourletter"
	"github.com/zkgo/zkgo/proto"
)

// isWord reports whether the first four bytes of a connection are a command. As a
// length they would be more than a gigabyte.
func isWord(first string) bool { return fourletter.Known(first) }

// answerWord answers a four-letter word, which ends the connection.
func (c *conn) answerWord(word string) {
	s := c.s
	c.replies.countReceived(proto.LengthSize)
	defer s.stats.Sent.Add(1)
	if !fourletter.Allowed(word, s.cfg.FourLetterWords, s.cfg.ReadOnlyMode) {
		_, _ = c.nc.Write(fourletter.Refusal(word))
		return
	}
	var arg []byte
	if word == "stmk" {
		for len(c.reader.unread()) < proto.LengthSize+fourletter.ArgSize {
			if c.reader.fill() != nil {
				return
			}
		}
		arg = c.reader.unread()[proto.LengthSize:][:fourletter.ArgSize]
	}
	w := wordWriter{c: c}
	if fourletter.Long(word) {
		w.long = s.long.Begin(nil, func() {
			c.complain("closing a client that does not read the answer to its command", "command", word)
			s.stats.Dropped.Add(1)
			c.kill()
		})
		defer w.long.End()
		if c.replies.isClosed() {
			return
		}
	}
	// The client may have closed the connection.
	_ = fourletter.Answer(w, word, arg, s.Status(), c.nc.RemoteAddr().String())
}

// wordWriter writes the answer to a four-letter word. What is being written counts as
// output of the connection.
type wordWriter struct {
	c    *conn
	long *limits.LongAnswer // nil: the answer is short
}

func (w wordWriter) Write(b []byte) (int, error) {
	c := w.c
	if w.long != nil {
		w.long.Sending()
	}
	c.replies.mu.Lock()
	c.replies.pushing = len(b)
	c.replies.mu.Unlock()
	c.replies.countQueued(len(b))
	err := c.replies.writeAll(b)
	c.replies.mu.Lock()
	left := c.replies.pushing
	c.replies.pushing = 0
	c.replies.mu.Unlock()
	c.s.queuedOut.Add(-int64(left))
	return len(b) - left, err
}
