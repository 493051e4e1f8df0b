package samuel_test

import (
	"testing"

	"github.com/zkgo/zkgo/server/zktest"
	"github.com/zkgo/zkgo/server/zktest/samuel"
)

func TestConnect(t *testing.T) {
	t.Parallel()
	zs := zktest.Run(t)
	conn := samuel.Connect(t, zs)
	zs.Set("/a", "1")
	if data, _, err := conn.Get("/a"); err != nil || string(data) != "1" {
		t.Errorf("%q %v", data, err)
	}
}

// A connection to a cluster moves when its server fails.
func TestConnectToACluster(t *testing.T) {
	t.Parallel()
	cl := zktest.RunCluster(t, 3)
	conn := samuel.Connect(t, cl)
	cl.ForceLeaderChange()
	if ok, _, err := conn.Exists("/zookeeper"); err != nil || !ok {
		t.Errorf("%v %v", ok, err)
	}
}
