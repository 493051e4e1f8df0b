package bench

import (
	"math"
	"math/rand/v2"
	"strconv"

	"github.com/zkgo/zkgo/proto"
)

// work is a kind of load.
type work struct {
	name  string
	about string
	// prepare, if not nil, creates the znodes that Config.Nodes counts.
	prepare func(r *run) error
	// A finite work ends by itself, the others end when the run is over.
	finite bool
	run    func(r *run) error
	// sum, if not nil, adds to the result after the run.
	sum func(r *run)
}

// catalog lists every work.
func catalog() []work {
	return []work{
		{name: "get", about: "read a value", prepare: spread, run: gets},
		{name: "exists", about: "read a znode's stat", prepare: spread, run: exists},
		{name: "children", about: "list the children of a znode, about the square root of --nodes", prepare: spread, run: children},
		{name: "set", about: "write a value", prepare: spread, run: sets},
		{name: "mixed", about: "get and set; --writes is the fraction of sets", prepare: spread, run: mixed},
		{name: "multi", about: "transactions of --ops sets", prepare: spread, run: multis, sum: subOperations},
		{name: "create", about: "create znodes, below one parent per connection", run: creates},
		{name: "create-delete", about: "create a znode and delete it (two operations)", run: createDeletes},
		{name: "directory", about: "create, stat and delete a znode below one parent with --nodes children (three operations)", prepare: fillDirectory, run: directory},
		{name: "ephemeral-sequential", about: "create ephemeral sequential znodes, all below one parent", run: ephemeralSequentials},
		{name: "watch", about: "set a znode that --conns sessions watch; each event received is one operation", run: fanOut},
		{name: "sessions", about: "connect, open a session and close it", run: churn},
		{name: "lock", about: "acquire and release a lock of the lock recipe, one lock per connection", run: ownLocks},
		{name: "lock-shared", about: "the same with one lock for all connections; latency is the time from a release to the next acquisition", run: sharedLock},
		{name: "load", about: "create --nodes znodes once, spread over about the square root of --nodes parents", finite: true, run: spread},
	}
}

// Work describes a valid Config.Work.
type Work struct{ Name, About string }

// Works returns all works.
func Works() []Work {
	var all []Work
	for _, w := range catalog() {
		all = append(all, Work{w.name, w.about})
	}
	return all
}

// Names returns the names of all works.
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

// pumps runs a pump for every connection. requests returns the function that appends
// its requests.
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
		n, dir := 0, r.ownPath(i)+"/"
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
		n, dir := 0, r.ownPath(i)+"/"
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

// fillDirectory creates one znode with Config.Nodes children.
func fillDirectory(r *run) error {
	if err := r.make(r.conns[0], r.directory()); err != nil {
		return err
	}
	for i := range r.cfg.Nodes {
		r.keys = append(r.keys, r.directory()+"/"+strconv.Itoa(i))
	}
	return r.loadKeys()
}

func (r *run) directory() string { return r.root + "/d" }

func directory(r *run) error {
	return r.pumps(func(i int, random *rand.Rand) func(c *conn) {
		create := proto.CreateRequest{Data: r.value, ACL: proto.OpenACL()}
		own, n, step := r.directory()+"/c"+strconv.Itoa(i)+"-", 0, 0
		return func(c *conn) {
			switch step++; step % 3 {
			case 1:
				n++
				create.Path = own + strconv.Itoa(n)
				c.request(proto.OpCreate, &create)
			case 2:
				c.request(proto.OpExists, &proto.ExistsRequest{Path: r.key(random)})
			default:
				c.request(proto.OpDelete, &proto.DeleteRequest{Path: create.Path, Version: -1})
			}
		}
	})
}
