package server

import (
	"reflect"
	"testing"

	"github.com/zkgo/zkgo/internal/defaults"
	"github.com/zkgo/zkgo/internal/zoocfg"
)

// TestDefaultsAreTheSame: a zoo.cfg without settings means the same as an empty Config,
// apart from the exceptions below.
func TestDefaultsAreTheSame(t *testing.T) {
	t.Parallel()
	z, err := zoocfg.ParseText("zoo.cfg", "dataDir="+t.TempDir()+"\n")
	if err != nil {
		t.Fatal(err)
	}
	fromFile, err := fromZooCfg(z, Formats{})
	if err != nil {
		t.Fatal(err)
	}
	if fromFile.TickTime != defaults.FileTickTime || fromFile.Admin == nil || fromFile.Limits.MemoryCeiling == 0 {
		t.Errorf("tickTime %v, AdminServer %v, memoryCeiling %d", fromFile.TickTime, fromFile.Admin, fromFile.Limits.MemoryCeiling)
	}
	// ZooKeeper's default tick is longer than the tick in its sample file.
	fromFile.TickTime = defaults.TickTime
	fromFile.MinSessionTimeout, fromFile.MaxSessionTimeout = 0, 0
	// A server process has an AdminServer and most of the machine's memory, but an embedding
	// program has to enable these.
	fromFile.Admin, fromFile.Limits.MemoryCeiling = nil, 0
	fromFile.zooCfg = nil
	// Without a limit, the other settings of the throttle have no effect.
	if fromFile.Limits.RequestThrottle.MaxRequests == 0 {
		fromFile.Limits.RequestThrottle = RequestThrottle{}
	}

	got, want := fromFile.withDefaults(), Config{DataDir: z.DataDir}.withDefaults()
	for _, c := range []*Config{&got, &want} {
		c.Env.Now, c.Env.Wall = nil, nil // functions can't be compared
	}
	g, w := reflect.ValueOf(got), reflect.ValueOf(want)
	for i := range g.NumField() {
		if g.Type().Field(i).IsExported() && !reflect.DeepEqual(g.Field(i).Interface(), w.Field(i).Interface()) {
			t.Errorf("%s of a zoo.cfg: %+v; of a Config: %+v", g.Type().Field(i).Name, g.Field(i), w.Field(i))
		}
	}
}
