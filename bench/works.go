package bench

import (
	"math"
	"math/rand/v2"
	"strconv"

	"github.com/zkgo/zkgo/proto"
)

// work is something that servers can be asked to do.
type work struct {
	name  string
	about string
	reads bool // needs the znodes that Config.Nodes counts
	// finite works end by themselves; the others when the run is over.
	finite bool
	run    func(r *run) error
	// sum, if there is one, adds to the result when all has ended.
	sum func(r *run)
}

// catalog lists every work.
func catalog() []work {
	return []work{
		{name: "get", about: "read a value", reads: true, run: gets},
		{name: "exists", about: "ask for a znode's stat", reads: true, run: exists},
		{name: "children", about: "list a directory of about the square root of --nodes znodes", reads: true, run: children},
		{name: "set", about: "write a value", reads: true, run: sets},
		{name: "mixed", about: "get and set, --writes of them sets", reads: true, run: mixed},
		{name: "multi", about: "transactions of --ops sets", reads: true, run: multis, sum: subOperations},
		{name: "create", about: "create znodes, in a directory for each connection", run: creates},
		{name: "create-delete", about: "create a znode and delete it, which are two operations", run: createDeletes},
		{name: "ephemeral-sequential", about: "create ephemeral sequential znodes, all in one directory", run: ephemeralSequentials},
		{name: "watch", about: "one set, --conns sessions that watch the znode: an operation is an event that arrived", run: fanOut},
		{name: "sessions", about: "open a connection with a session and close it", run: churn},
		{name: "lock", about: "ZooKeeper's lock recipe, a lock for each connection: an operation is acquiring and releasing", run: ownLocks},
		{name: "lock-shared", about: "the same, one lock for all: latency is from sending the release to the next holder's knowing", run: sharedLock},
		{name: "load", about: "create --nodes znodes in about as many directories as each has znodes, once", finite: true, run: loadOnce},
	}
}

// Work is a name for Config.Work.
type Work struct{ Name, About string }

// Works lists what can be measured.
func Works() []Work {
	var all []Work
	for _, w := range catalog() {
		all = append(all, Work{w.name, w.about})
	}
	return all
}

// Names lists the names of Works.
func Names() []string {
	var names []string
	for _, w := range catalog() {
		names = append(names, w.name)
	}
	return names
}

func find(name string) *work {
	for _, w := range catalog() {
		if w.name == name {
			return &w
		}
	}
	return nil
}

// pumps runs a pump for every connection; requests returns what adds its requests.
func (r *run) pumps(requests func(i int, random *rand.Rand) func(c *conn)) error {
	return r.each(0, func(i int, _ *conn) error {
		return r.pump(i, requests(i, rand.New(rand.NewPCG(r.cfg.Seed, uint64(i)+2))))
	})
}

func (r *run) key(random *rand.Rand) string { return r.keys[random.IntN(len(r.keys))] }

func gets(r *run) error {
	return r.pumps(func(_ int, random *rand.Rand) func(c *conn) {
		var get proto.GetDataRequest
		return func(c *conn) {
			get.Path = r.key(random)
			c.request(proto.OpGetData, &get)
		}
	})
}

func exists(r *run) error {
	return r.pumps(func(_ int, random *rand.Rand) func(c *conn) {
		var ask proto.ExistsRequest
		return func(c *conn) {
			ask.Path = r.key(random)
			c.request(proto.OpExists, &ask)
		}
	})
}

func children(r *run) error {
	return r.pumps(func(_ int, random *rand.Rand) func(c *conn) {
		var list proto.GetChildrenRequest
		return func(c *conn) {
			list.Path = proto.Parent(r.key(random))
			c.request(proto.OpGetChildren, &list)
		}
	})
}

func sets(r *run) error {
	return r.pumps(func(_ int, random *rand.Rand) func(c *conn) {
		set := proto.SetDataRequest{Data: r.value, Version: -1}
		return func(c *conn) {
			set.Path = r.key(random)
			c.request(proto.OpSetData, &set)
		}
	})
}

func mixed(r *run) error {
	return r.pumps(func(_ int, random *rand.Rand) func(c *conn) {
		var get proto.GetDataRequest
		set := proto.SetDataRequest{Data: r.value, Version: -1}
		return func(c *conn) {
			if random.Float64() < r.cfg.Writes {
				set.Path = r.key(random)
				c.request(proto.OpSetData, &set)
				return
			}
			get.Path = r.key(random)
			c.request(proto.OpGetData, &get)
		}
	})
}

func multis(r *run) error {
	return r.pumps(func(_ int, random *rand.Rand) func(c *conn) {
		sets := make([]proto.SetDataRequest, r.cfg.Ops)
		var multi proto.MultiRequest
		for i := range sets {
			sets[i] = proto.SetDataRequest{Data: r.value, Version: -1}
			multi.Ops = append(multi.Ops, proto.MultiOp{Op: proto.OpSetData, Req: &sets[i]})
		}
		return func(c *conn) {
			for i := range sets {
				sets[i].Path = r.key(random)
			}
			c.request(proto.OpMulti, &multi)
		}
	})
}

func subOperations(r *run) {
	if r.took > 0 {
		r.figure(Figure{"sub-operations", math.Round(float64(r.ops()) * float64(r.cfg.Ops) / r.took.Seconds()), "ops/s"})
	}
}

func creates(r *run) error {
	if err := r.each(0, r.makeOwn); err != nil {
		return err
	}
	return r.pumps(func(i int, _ *rand.Rand) func(c *conn) {
		create := proto.CreateRequest{Data: r.value, ACL: proto.OpenACL()}
		n, dir := 0, r.own(i)+"/"
		return func(c *conn) {
			n++
			create.Path = dir + strconv.Itoa(n)
			c.request(proto.OpCreate, &create)
		}
	})
}

func createDeletes(r *run) error {
	if err := r.each(0, r.makeOwn); err != nil {
		return err
	}
	return r.pumps(func(i int, _ *rand.Rand) func(c *conn) {
		create := proto.CreateRequest{Data: r.value, ACL: proto.OpenACL()}
		del := proto.DeleteRequest{Version: -1}
		n, dir := 0, r.own(i)+"/"
		return func(c *conn) {
			if del.Path != "" {
				c.request(proto.OpDelete, &del)
				del.Path = ""
				return
			}
			n++
			create.Path = dir + strconv.Itoa(n)
			del.Path = create.Path
			c.request(proto.OpCreate, &create)
		}
	})
}

func ephemeralSequentials(r *run) error {
	return r.pumps(func(int, *rand.Rand) func(c *conn) {
		create := proto.CreateRequest{Path: r.root + "/e-", Data: r.value, ACL: proto.OpenACL(), Flags: int32(proto.ModeEphemeralSequential)}
		return func(c *conn) { c.request(proto.OpCreate, &create) }
	})
}
