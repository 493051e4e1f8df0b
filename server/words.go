package server

import (
	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/server/fourletter"
)

// isWord reports whether the first four bytes of a connection are a command. As a
// length they would be more than a gigabyte.
func isWord(first string) bool { return fourletter.Known(first) }

// answerWord answers a four-letter word, which ends the connection.
func (c *conn) answerWord(word string) {
	s := c.s
	c.countReceived(proto.LengthSize)
	defer s.stats.sent.Add(1)
	if !fourletter.Allowed(word, s.cfg.FourLetterWords, s.cfg.ReadOnlyMode) {
		_, _ = c.nc.Write(fourletter.Refusal(word))
		return
	}
	var arg []byte
	if word == "stmk" {
		for len(c.unread()) < proto.LengthSize+fourletter.ArgSize {
			if c.fill() != nil {
				return
			}
		}
		arg = c.unread()[proto.LengthSize:][:fourletter.ArgSize]
	}
	_, _ = c.nc.Write(fourletter.Answer(word, arg, s.Status(), c.nc.RemoteAddr().String()))
}
