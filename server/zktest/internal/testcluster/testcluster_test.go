package testcluster

import (
	"net"
	"path/filepath"
	"testing"

	"github.com/zkgo/zkgo/tests/kit/must"
)

// If another process uses a port after it was chosen, Start should choose others.
func TestPortsInUseAreReplaced(t *testing.T) {
	t.Parallel()
	l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	defer l.Close()
	chosen := 0
	choose := func(n int) ([]int, error) {
		ports, err := freePorts(n)
		if chosen++; chosen == 1 && err == nil {
			ports[0] = l.Addr().(*net.TCPAddr).Port
		}
		return ports, err
	}
	servers := must.Get(startAt(choose, filepath.Join(t.TempDir(), "servers"), 1, nil))(t)
	if chosen != 2 {
		t.Errorf("ports were chosen %d times", chosen)
	}
	must.Do(t, Stop(servers))
}
