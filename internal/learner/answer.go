package learner

import (
	"errors"
	"fmt"

	"github.com/zkgo/zkgo/internal/zab"
	"github.com/zkgo/zkgo/proto"
)

// Touch is a sign of life from the client of a session.
type Touch struct {
	Session int64
	Timeout int32 // milliseconds
}

// maxTouches limits the sessions in one packet, which jute.maxbuffer limits too. The leader accepts
// any number of packets.
const maxTouches = 4096

// sendTouched answers a ping with the sessions that our clients have used. The data must not
// be null.
func (c *Conn) sendTouched(zxid int64, touched []Touch) error {
	c.send.Lock()
	defer c.send.Unlock()
	for {
		n := min(len(touched), maxTouches)
		data := make([]byte, 0, n*(8+4))
		for _, t := range touched[:n] {
			data = proto.AppendInt(proto.AppendLong(data, t.Session), t.Timeout)
		}
		if err := c.sendLocked(zab.Packet{Kind: zab.KindPing, Zxid: zxid, Data: data}); err != nil {
			return err
		}
		if touched = touched[n:]; len(touched) == 0 {
			return nil
		}
	}
}

// syncDone passes on that the oldest sync has been done.
func (f *follower) syncDone() error {
	r, ok := f.takeSync()
	if !ok {
		return errors.New("unexpected SYNC: there is no sync that it answers")
	}
	return f.to.SyncDone(r.session, r.cxid)
}

// revalidated passes on the answer to the oldest Revalidate.
func (f *follower) revalidated(data []byte) error {
	d := proto.NewReader(data)
	session, valid := d.Long(), d.Bool()
	if d.Err() != nil || d.Len() > 0 {
		return fmt.Errorf("malformed REVALIDATE: %d bytes instead of a session and a boolean", len(data))
	}
	if asked, ok := f.takeSession(); !ok || asked != session {
		return fmt.Errorf("unexpected REVALIDATE of session %#x: it isn't the next that we asked for", session)
	}
	return f.to.Revalidated(session, valid)
}

// takeSync removes and returns the oldest sync.
func (c *Conn) takeSync() (syncRequest, bool) {
	c.send.Lock()
	defer c.send.Unlock()
	return takeFirst(&c.asked.syncs)
}

// takeSession removes and returns the session of the oldest Revalidate.
func (c *Conn) takeSession() (int64, bool) {
	c.send.Lock()
	defer c.send.Unlock()
	return takeFirst(&c.asked.sessions)
}

// takeFirst removes and returns the first item of a queue.
func takeFirst[T any](queue *[]T) (first T, ok bool) {
	if len(*queue) == 0 {
		return first, false
	}
	first, *queue = (*queue)[0], (*queue)[1:]
	return first, true
}
