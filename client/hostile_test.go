package client_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zkgo/zkgo/client"
	"github.com/zkgo/zkgo/proto"
)

// hostile connects a client to a server that grants a session and answers each
// request with the frame that answer returns, or closes the connection if that is
// nil. The server accepts only the first connection. The caller must run in a
// synctest bubble.
func hostile(t *testing.T, answer func(n int, request []byte) []byte, opts ...client.Option) *client.Client {
	t.Helper()
	var dials atomic.Int32
	done := make(chan struct{})
	dial := client.WithDialer(func(context.Context, string, string) (net.Conn, error) {
		if dials.Add(1) > 1 {
			return nil, errors.New("refused")
		}
		near, far := net.Pipe()
		go func() {
			defer close(done)
			defer far.Close()
			greet(far)
			for n := 0; ; n++ {
				request, err := frame(far)
				if err != nil {
					return
				}
				b := answer(n, request)
				if b == nil {
					return
				}
				if _, err := far.Write(b); err != nil {
					return
				}
			}
		}()
		return near, nil
	})
	c, err := client.Connect(t.Context(), "zk", append([]client.Option{dial, client.WithRetry(client.NoRetry())}, opts...)...)
	must(t, err)
	t.Cleanup(func() {
		_ = c.Close()
		<-done
	})
	return c
}

// greet grants a session of 10 seconds.
func greet(conn net.Conn) {
	if _, err := frame(conn); err != nil {
		return
	}
	r := proto.ConnectResponse{TimeOut: 10_000, SessionID: 1, Passwd: make([]byte, 16), HasReadOnly: true}
	_, _ = conn.Write(proto.AppendFrame(nil, r.Append(nil)))
}

// frame reads one frame.
func frame(r io.Reader) ([]byte, error) {
	var n [4]byte
	if _, err := io.ReadFull(r, n[:]); err != nil {
		return nil, err
	}
	b := make([]byte, binary.BigEndian.Uint32(n[:]))
	_, err := io.ReadFull(r, b)
	return b, err
}

// reply returns the frame of a reply.
func reply(xid int32, code proto.Code, body ...byte) []byte {
	h := proto.ReplyHeader{Xid: xid, Zxid: 7, Err: code}
	return proto.AppendFrame(nil, append(h.Append(nil), body...))
}

func TestHostileReplies(t *testing.T) {
	t.Parallel()
	note := func(body ...byte) []byte {
		h := proto.ReplyHeader{Xid: proto.XidNotification, Zxid: 7}
		return proto.AppendFrame(nil, append(h.Append(nil), body...))
	}
	for name, b := range map[string][]byte{
		"negative length":             {0xff, 0xff, 0xff, 0xff},
		"huge length":                 {0x7f, 0xff, 0xff, 0xff},
		"empty frame":                 {0, 0, 0, 0},
		"short header":                proto.AppendFrame(nil, []byte{0, 0, 0, 1}),
		"wrong xid":                   reply(99, 0),
		"xid of nobody":               reply(0, 0),
		"short body":                  reply(1, 0, 1, 2, 3),
		"no body":                     reply(1, 0),
		"data longer than the frame":  reply(1, 0, 0x7f, 0xff, 0xff, 0xff),
		"data of negative length":     reply(1, 0, 0xff, 0xff, 0xff, 0xfe),
		"pong without a ping":         reply(proto.XidPing, 0),
		"auth without an auth":        reply(proto.XidAuth, 0),
		"notification without a body": note(),
		"notification cut short":      note(0, 0, 0, 1, 0, 0, 0, 3, 0, 0, 0, 9, '/'),
		"two answers":                 append(reply(1, proto.ErrNoNode), reply(1, proto.ErrNoNode)...),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				c := hostile(t, func(int, []byte) []byte { return b })
				states := c.Subscribe()
				defer states.Close()
				_, _, err := c.Get(t.Context(), "/a")
				if name != "two answers" && (!errors.Is(err, client.ErrConnectionLoss) || !errors.Is(err, client.ErrProtocol)) {
					t.Errorf("get: %v", err)
				}
				for s := range states.C() {
					if s.State == client.StateSuspended {
						if !errors.Is(s.Err, client.ErrProtocol) {
							t.Errorf("suspended because of %v", s.Err)
						}
						break
					}
				}
			})
		})
	}
}

func TestFrameLengthAloneAllocatesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		c := hostile(t, func(int, []byte) []byte { return binary.BigEndian.AppendUint32(nil, client.DefaultMaxReply) })
		_, _, err := c.Get(t.Context(), "/a")
		if !errors.Is(err, client.ErrConnectionLoss) {
			t.Errorf("get: %v", err)
		}
		runtime.ReadMemStats(&after)
		if grown := after.TotalAlloc - before.TotalAlloc; grown > 4<<20 {
			t.Errorf("%d bytes were allocated", grown)
		}
	})
}

func TestHostileHandshake(t *testing.T) {
	t.Parallel()
	ok := proto.ConnectResponse{TimeOut: 10_000, SessionID: 1, Passwd: make([]byte, 16)}
	noID := ok
	noID.SessionID = 0
	for name, b := range map[string][]byte{
		"nothing":          {},
		"garbage":          []byte("HTTP/1.1 400 Bad Request\r\n\r\n"),
		"negative length":  {0xff, 0, 0, 0},
		"short":            proto.AppendFrame(nil, []byte{0, 0}),
		"no session":       proto.AppendFrame(nil, noID.Append(nil)),
		"a timeout of 0":   proto.AppendFrame(nil, new(proto.ConnectResponse).Append(nil)),
		"another's answer": proto.AppendFrame(nil, make([]byte, 100)),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
				defer cancel()
				_, err := client.Connect(ctx, "zk", client.WithDialer(func(context.Context, string, string) (net.Conn, error) {
					near, far := net.Pipe()
					go func() {
						defer far.Close()
						if _, err := frame(far); err == nil {
							_, _ = far.Write(b)
						}
					}()
					return near, nil
				}))
				if err == nil || !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("connect: %v", err)
				}
			})
		})
	}
}

// TestSilentHandshake tests that the client moves on to the next server if one accepts the
// connection but then stays silent.
func TestSilentHandshake(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		_, err := client.Connect(ctx, "zk", client.WithDialer(func(ctx context.Context, _, _ string) (net.Conn, error) {
			near, far := net.Pipe()
			go func() {
				_, _ = io.Copy(io.Discard, far)
				far.Close()
			}()
			return near, nil
		}))
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("connect: %v", err)
		}
	})
}

// TestUnsentIsSentOnTheNextConnection tests that requests queued after a blocked write
// count as unsent: we know that they had no effect.
func TestUnsentIsSentOnTheNextConnection(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var first net.Conn
		second := make(chan []byte, 1)
		dial := client.WithDialer(func(context.Context, string, string) (net.Conn, error) {
			near, far := net.Pipe()
			if first == nil {
				first = far
				go greet(far) // the server then stops reading
				return near, nil
			}
			go func() {
				defer far.Close()
				greet(far)
				for xid := int32(1); ; xid++ {
					b, err := frame(far)
					if err != nil {
						return
					}
					select {
					case second <- b:
					default:
					}
					if _, err := far.Write(reply(xid, proto.ErrNodeExists)); err != nil {
						return
					}
				}
			}()
			return near, nil
		})
		c, err := client.Connect(t.Context(), "zk", dial)
		must(t, err)
		defer c.Close()
		results := make(chan error, 2)
		create := func(path string) {
			_, err := c.Create(t.Context(), path, nil)
			results <- err
		}
		go create("/sent")
		synctest.Wait()
		go create("/waits")
		synctest.Wait()
		first.Close()
		if err := <-results; !errors.Is(err, client.ErrUnknownOutcome) || !errors.Is(err, client.ErrConnectionLoss) {
			t.Errorf("the request being written: %v", err)
		}
		if err := <-results; !errors.Is(err, client.ErrNodeExists) {
			t.Errorf("the request after it: %v", err)
		}
		if b := <-second; !bytes.Contains(b, []byte("/waits")) {
			t.Errorf("the second connection begins with %q", b)
		}
	})
}

func FuzzReplies(f *testing.F) {
	f.Add(byte(0), reply(1, 0, 0, 0, 0, 0))
	f.Add(byte(1), reply(1, proto.ErrNoNode))
	f.Add(byte(2), append(reply(proto.XidNotification, 0, 0, 0, 0, 1, 0, 0, 0, 3, 0, 0, 0, 1, '/'), reply(1, 0)...))
	f.Add(byte(3), reply(1, 0, 0, 0, 0, 1, 0, 0, 0, 1, 'a'))
	f.Add(byte(4), reply(1, 0, 0xff, 0xff, 0xff, 0xff, 1, 0xff, 0xff, 0xff, 0xff))
	f.Fuzz(func(t *testing.T, op byte, b []byte) {
		synctest.Test(t, func(t *testing.T) {
			c := hostile(t, func(n int, _ []byte) []byte {
				if n > 0 {
					return nil
				}
				return append([]byte{}, b...)
			})
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			ask(ctx, c, op)
		})
	})
}

// ask sends one of the requests with different kinds of replies. op selects it.
func ask(ctx context.Context, c *client.Client, op byte) {
	switch op % 10 {
	case 0:
		_, _, _, _ = c.GetW(ctx, "/a")
	case 1:
		_, _, _, _ = c.ExistsW(ctx, "/a")
	case 2:
		_, _ = c.WatchRecursive(ctx, "/")
	case 3:
		_, _, _ = c.Children(ctx, "/a")
	case 4:
		_, _ = c.Multi(ctx, client.CreateOp("/a", nil), client.CheckOp("/b", 1))
	case 5:
		_, _ = c.MultiRead(ctx, client.GetOp("/a"), client.ChildrenOp("/b"))
	case 6:
		_, _, _ = c.GetACL(ctx, "/a")
	case 7:
		_, _ = c.WhoAmI(ctx)
	case 8:
		_, _ = c.Create(ctx, "/a", nil, client.Protected, client.CreateParents)
	case 9:
		_, _ = c.Reconfig(ctx, client.Reconfiguration{Joining: []string{"x"}})
	}
}
