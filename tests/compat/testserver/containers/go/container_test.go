package containers

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/testcontainers/testcontainers-go"
	"github.com/testcontainers/testcontainers-go/wait"
)

func TestWorkerExpires(t *testing.T) {
	ctx := t.Context()
	zkgo, err := testcontainers.Run(ctx, "zkgo/zkgo:0.1.0",
		testcontainers.WithCmd("testserver", "--stay", "--host", "0.0.0.0", "--port", "2181", "--control-port", "8080"),
		testcontainers.WithExposedPorts("2181/tcp", "8080/tcp"),
		testcontainers.WithWaitStrategy(wait.ForListeningPort("8080/tcp").SkipInternalCheck()))
	testcontainers.CleanupContainer(t, zkgo)
	if err != nil {
		t.Fatal(err)
	}
	addr, err := zkgo.PortEndpoint(ctx, "2181/tcp", "")
	if err != nil {
		t.Fatal(err)
	}
	control, err := zkgo.PortEndpoint(ctx, "8080/tcp", "http")
	if err != nil {
		t.Fatal(err)
	}

	conn, _, err := zk.Connect([]string{addr}, 10*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := conn.Create("/worker", nil, zk.FlagEphemeral, zk.WorldACL(zk.PermAll)); err != nil {
		t.Fatal(err)
	}
	expire := fmt.Sprintf("%s/v1/sessions/%d/expire", control, conn.SessionID())
	resp, err := http.Post(expire, "application/json", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		t.Error(resp.Status)
	}
}
