package sim

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/zkgo/zkgo/tests/kit/lossyfs"
)

// drive is the disk of a server. It outlives the processes; each process has its
// own volume.
type drive struct {
	root string // for the files of databases

	mu      sync.Mutex
	luck    *rand.Rand
	now     *volume       // of the running process; nil: none runs
	mem     *lossyfs.Disk // while no process runs
	volumes int
	latency time.Duration // longest fsync
	stalled chan struct{} // closed at the end of a stall; nil: none
	broken  int           // fsyncs until one fails; 0: none fails
	fullUp  bool
	trap    int // calls of moment until fire is called
	fire    func()
	seen    map[string]int // faults that had an effect, by kind
}

func newDrive(root string, seed, number uint64) *drive {
	return &drive{root: root, luck: rand.New(rand.NewPCG(seed, number)), mem: lossyfs.NewMemory(),
		latency: time.Millisecond, seen: make(map[string]int)}
}

// mount returns the volume for the next process.
func (d *drive) mount() (*volume, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.volumes++
	dir := filepath.Join(d.root, strconv.Itoa(d.volumes))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	v := &volume{d: d, mem: d.mem, bases: newDatabases(dir)}
	d.now, d.mem = v, nil
	return v, nil
}

// detach removes the disk from its process, which continues without effect. After a power cut only
// the durable part of its writes is left, and some of the rest.
func (d *drive) detach(powerCut bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	v := d.now
	if v == nil {
		return
	}
	d.now = nil
	if powerCut {
		d.mem = v.mem.AfterCut(d.luck)
	} else {
		d.mem = v.mem.Clone()
	}
	d.trap, d.fire, d.broken, d.fullUp = 0, nil, 0, false
	d.releaseLocked()
}

// wipe replaces the disk with an empty one. No process may be running.
func (d *drive) wipe() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.mem = lossyfs.NewMemory()
}

// set calls f with the lock held, to change the disk's faults.
func (d *drive) set(f func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	f()
}

// stall makes every fsync hang until release.
func (d *drive) stall() {
	d.set(func() {
		if d.stalled == nil {
			d.stalled = make(chan struct{})
		}
	})
}

func (d *drive) release() { d.set(d.releaseLocked) }

func (d *drive) releaseLocked() {
	if d.stalled != nil {
		close(d.stalled)
		d.stalled = nil
	}
}

// moment marks a point at which a power cut may happen.
func (d *drive) moment(v *volume) {
	d.mu.Lock()
	var fire func()
	if d.now == v && d.trap > 0 {
		if d.trap--; d.trap == 0 {
			fire, d.fire = d.fire, nil
		}
	}
	d.mu.Unlock()
	if fire != nil {
		fire()
	}
}

// allow returns ENOSPC if the disk is full and the operation needs space.
func (d *drive) allow(v *volume, op lossyfs.Op) syscall.Errno {
	switch op.Kind {
	case lossyfs.Create, lossyfs.Mkdir:
	case lossyfs.Write:
		if op.Off+int64(len(op.Data)) <= v.mem.Size(op.Node) {
			return 0
		}
	default:
		return 0
	}
	return d.full(v)
}

func (d *drive) full(v *volume) syscall.Errno {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.now != v || !d.fullUp {
		return 0
	}
	d.seen["disk full"]++
	return syscall.ENOSPC
}

// fsync fails if an error is due. If slow is set, it is slow.
func (d *drive) fsync(v *volume, slow bool) syscall.Errno {
	d.mu.Lock()
	if d.now != v {
		d.mu.Unlock()
		return 0
	}
	pause, stalled := time.Duration(d.luck.Int64N(int64(d.latency)+1)), d.stalled
	fails := false
	if d.broken > 0 {
		d.broken--
		fails = d.broken == 0
	}
	if fails {
		d.seen["fsync error"]++
	}
	if stalled != nil && slow {
		d.seen["fsync stall"]++
	}
	d.mu.Unlock()
	if slow {
		time.Sleep(pause)
	}
	if stalled != nil && slow {
		<-stalled
	}
	if fails {
		return syscall.EIO
	}
	return 0
}
