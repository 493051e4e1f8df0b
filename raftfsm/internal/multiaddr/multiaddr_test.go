package multiaddr

import (
	"context"
	"net"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zkgo/zkgo/internal/quorum"
)

// fakePaths is a network in which each address is the time until it accepts.
type fakePaths struct{ quorum.Network }

func (fakePaths) Dial(ctx context.Context, addr string) (net.Conn, error) {
	after, err := time.ParseDuration(addr)
	if err != nil {
		return nil, err
	}
	select {
	case <-time.After(after):
		c, _ := net.Pipe()
		return c, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// An address on which a stream has failed is dialled after all others, however quickly it
// accepts, and is not given up if it is the only one.
func TestBlamedAddressComesLast(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var b Blames
		dial := func(want string, addrs ...string) net.Conn {
			t.Helper()
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			conn, err := Network{fakePaths{}, func(string) []string { return addrs[1:] }, &b}.Dial(ctx, addrs[0])
			if err != nil {
				if want != "" {
					t.Fatal(err)
				}
				return nil
			}
			if got := conn.(*pathConn).addr; got != want {
				t.Fatalf("the connection is to %s, not %s", got, want)
			}
			return conn
		}
		quorum.BlamePath(dial("1ms", "1ms", "400ms"))
		dial("400ms", "1ms", "400ms")
		time.Sleep(firstBlame)
		dial("1ms", "1ms", "400ms")
		quorum.BlamePath(dial("1ms", "1ms", "400ms"))
		time.Sleep(firstBlame)
		dial("400ms", "1ms", "400ms")
		time.Sleep(firstBlame)
		quorum.BlamePath(dial("1ms", "1ms", "1h"))
		dial("1ms", "1ms", "1h") // the other address is silent
		dial("1ms", "1h", "1ms")
		dial("", "1h", "2h")
	})
}

func TestBlame(t *testing.T) {
	t.Parallel()
	var b Blames
	now := time.Now()
	b.blame("x", now)
	b.blame("y", now.Add(time.Second))
	if good, blamed := b.sort([]string{"y", "z", "x"}, now.Add(2*time.Second)); !slices.Equal(good, []string{"z"}) || !slices.Equal(blamed, []string{"x", "y"}) {
		t.Fatal(good, blamed)
	}
	b.blame("x", now.Add(2*time.Second)) // another connection, at the same time
	if last := b.addr["x"].last; last != firstBlame {
		t.Fatal(last)
	}
	for range 10 { // again and again
		b.blame("x", b.addr["x"].until.Add(time.Second))
	}
	if last := b.addr["x"].last; last != maxBlame {
		t.Fatal(last)
	}
	b.blame("y", now.Add(24*time.Hour))
	if last := b.addr["y"].last; last != firstBlame || len(b.addr) != 1 {
		t.Fatal(last, b.addr)
	}
}
