package raftfsm

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/raftfsm/internal/replica"
	"github.com/zkgo/zkgo/session"
	"github.com/zkgo/zkgo/tree"
)

// elsewhere returns an imported state: a persistent znode, an ephemeral one, and the
// session that owns it.
func elsewhere() (*tree.Tree, *session.Table, session.Session) {
	t, table := tree.New(), session.NewTable()
	s := table.Create(1, 3_600_000, [16]byte{5})
	for zxid, req := range map[int64]*proto.CreateRequest{
		0x5_0000_0001: {Path: "/kept", ACL: proto.OpenACL(), Data: []byte("value")},
		0x5_0000_0002: {Path: "/gone", ACL: proto.OpenACL(), Flags: flagEphemeral},
	} {
		t.Apply(&tree.Txn{Zxid: zxid, Time: 5, Session: s.ID}, proto.OpCreate, req)
	}
	t.Advance(0x5_0000_0007)
	return t, table, s
}

// One member of an ensemble gets the state, and the others join empty. Sessions
// continue.
func TestSeedOfAnEnsemble(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 3).onDisk()
		tr, table, s := elsewhere()
		if err := c.config(3).Seed(tr, table); err != nil {
			t.Fatal(err)
		}
		first := c.start(3)
		if st := first.awaitServed(); !first.exists("/kept") || !first.exists("/gone") || st.Epoch != 6 {
			t.Errorf("%+v", st)
		}
		c.start(1)
		c.start(2).awaitServed()
		c.eventually("three votes", func() bool { return c.voters() == 3 })
		if o, ok := c.rigs[2].tryReattach(s); !ok || o.code != proto.Ok {
			t.Errorf("%+v, %v", o, ok)
		}
		c.settled()
		if !c.rigs[1].exists("/kept") {
			t.Error("who joined lacks something")
		}
		for id := uint64(1); id <= 3; id++ {
			c.kill(id)
		}
		if err := c.config(2).Seed(tr, table); !errors.Is(err, ErrHasState) {
			t.Errorf("where a state is: %v", err)
		}
	})
}

// A restored state is a new beginning: the epoch is far above the old one, and no
// session continues.
func TestRestore(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 3).onDisk()
		tr, known, s := elsewhere()
		table := session.NewTable() // as from a backup that doesn't know the counter
		for row := range known.All {
			table.Put(row)
		}
		done, err := c.config(3).Restore(tr, table, 0)
		if err != nil || done.Zxid>>32 != 5+replica.EpochGap {
			t.Fatalf("%+v, %v", done, err)
		}
		r := c.start(3)
		if st := r.awaitServed(); !r.exists("/kept") || r.exists("/gone") || st.Epoch <= 5+replica.EpochGap {
			t.Errorf("%+v", st)
		}
		if o, _ := r.tryReattach(s); o.code != proto.ErrSessionExpired {
			t.Errorf("the old session: %+v", o)
		}
		const server = 8 // bits of the server in a session id
		if next := r.attach(time.Hour); uint64(next.ID)<<server <= uint64(s.ID+1000)<<server {
			t.Errorf("session %#x could be one of before", next.ID)
		}
	})
}
