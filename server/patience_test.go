package server

import (
	"fmt"
	"strings"
	"testing"

	"github.com/zkgo/zkgo/internal/zoocfg"
	"github.com/zkgo/zkgo/raftfsm"
)

// config check should describe elections as the servers run them.
func TestConfigCheckDescribesElections(t *testing.T) {
	t.Parallel()
	for _, lines := range []string{"tickTime=2000\nsyncLimit=5", "tickTime=4000\nsyncLimit=10", "tickTime=200\nsyncLimit=2"} {
		text := lines + "\ninitLimit=10\ndataDir=/d\nclientPort=2181\nserver.1=a:2888:3888\nserver.2=b:2888:3888\nserver.3=c:2888:3888\n"
		c, err := zoocfg.ParseText("zoo.cfg", text, zoocfg.WithMyID(1))
		if err != nil {
			t.Fatal(err)
		}
		dead, slow := raftfsm.Patience(c.TickTime, c.SyncLimit)
		want := fmt.Sprintf("after %v if its machine does not answer, and after %v if only the process is slow", dead, slow)
		if got := strings.Join(c.Check().Summary, " "); !strings.Contains(got, want) {
			t.Errorf("%s: %q does not say %q", lines, got, want)
		}
	}
}
