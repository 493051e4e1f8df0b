package lossyfs

import (
	"maps"
	"os"
	"path/filepath"
	"sync"
	"syscall"
)

// pageSize is the unit in which unsynced data survives or is lost.
const pageSize = 4096

// ID is an inode number. The root is 1; numbers are not reused.
type ID uint64

// Root is the root directory.
const Root ID = 1

// MarkName is a file in the root directory that stores nothing: data written to it becomes
// a mark among the operations. A program under test should use it to record each acknowledgement.
const MarkName = ".marks"

// Faults says how a disk pretends to have stored something, or fails.
type Faults struct {
	IgnoreFsync    bool // of files
	IgnoreDirFsync bool
	// Capacity bounds the bytes in all files, beyond which a write gets ENOSPC.
	// 0: no bound.
	Capacity int64
	// NoJournal discards every operation after it is executed, for a disk that is
	// used for a long time and never replayed.
	NoJournal bool
}

// Disk is the current content of the files, and what would be left after a power
// cut.
type Disk struct {
	mu      sync.Mutex
	faults  Faults
	inodes  map[ID]*inode
	next    ID
	journal []Op
	marks   ID    // the inode of MarkName, once it was looked up
	used    int64 // bytes in files that have or had a name
	dead    bool
	replay  bool // no journal is kept
	// held is closed when fsyncs may proceed; nil if they needn't wait.
	held chan struct{}
}

// inode is a file or a directory, each with its durable counterpart.
type inode struct {
	dir     bool
	data    []byte
	durable []byte
	dirty   map[int]bool // pages of data that differ from durable

	entries map[string]ID
	kept    map[string]ID // durable entries
	pending []change      // the changes that turn kept into entries, in order
}

// change is one directory operation, atomic across the names it touches.
type change map[string]ID // 0 removes

// NewDisk returns an empty disk.
func NewDisk(f Faults) *Disk {
	d := &Disk{faults: f, inodes: map[ID]*inode{}, next: Root + 1}
	d.inodes[Root] = newDir()
	return d
}

func newDir() *inode {
	return &inode{dir: true, entries: map[string]ID{}, kept: map[string]ID{}}
}

func newFile() *inode { return &inode{dirty: map[int]bool{}} }

// Kind is the kind of an operation.
type Kind uint8

// These are the operations that change something, or would.
const (
	Create Kind = iota
	Mkdir
	Remove
	Rename
	Write
	Truncate
	Fsync
	FsyncDir
	Mark
)

// Op is one operation as the kernel requested it.
type Op struct {
	Kind        Kind
	Node, To    ID // To: the target directory of a rename
	Name, Name2 string
	Off         int64
	Data        []byte
	Excl        bool
}

// HoldFsyncs makes every fsync of files and directories wait until release is
// called, like a disk that hangs. Only one hold may be active at a time.
func (d *Disk) HoldFsyncs() (release func()) {
	held := make(chan struct{})
	d.mu.Lock()
	defer d.mu.Unlock()
	d.held = held
	return func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.held = nil
		close(held)
	}
}

// awaitFsync waits until fsyncs may proceed.
func (d *Disk) awaitFsync() {
	d.mu.Lock()
	held := d.held
	d.mu.Unlock()
	if held != nil {
		<-held
	}
}

// do executes an operation and records it.
func (d *Disk) do(op Op) (ID, syscall.Errno) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.dead {
		return 0, syscall.EIO
	}
	if errno := d.grow(op); errno != 0 {
		return 0, errno
	}
	id, errno := d.apply(op)
	if errno == 0 && !d.replay && !d.faults.NoJournal {
		d.journal = append(d.journal, op)
	}
	return id, errno
}

// grow accounts for the bytes that an operation adds. We don't free the space of removed
// files, as if a process still had them open.
func (d *Disk) grow(op Op) syscall.Errno {
	n := d.inodes[op.Node]
	if n == nil || op.Kind != Write && op.Kind != Truncate {
		return 0
	}
	more := max(0, op.Off+int64(len(op.Data))-int64(len(n.data)))
	if d.faults.Capacity > 0 && d.used+more > d.faults.Capacity {
		return syscall.ENOSPC
	}
	d.used += more
	return 0
}

func (d *Disk) apply(op Op) (ID, syscall.Errno) {
	n := d.inodes[op.Node]
	if n == nil {
		return 0, syscall.ENOENT
	}
	switch op.Kind {
	case Create, Mkdir:
		return d.create(n, op)
	case Remove:
		return 0, d.remove(n, op)
	case Rename:
		return 0, d.rename(n, op)
	case Write:
		n.write(op.Off, op.Data)
	case Truncate:
		n.truncate(op.Off)
	case Fsync:
		if !d.faults.IgnoreFsync {
			n.fsync()
		}
	case FsyncDir:
		if !d.faults.IgnoreDirFsync {
			n.kept, n.pending = maps.Clone(n.entries), nil
		}
	case Mark:
	}
	return op.Node, 0
}

func (d *Disk) create(dir *inode, op Op) (ID, syscall.Errno) {
	if id, ok := dir.entries[op.Name]; ok {
		if op.Excl || op.Kind == Mkdir || d.inodes[id].dir {
			return 0, syscall.EEXIST
		}
		return id, 0
	}
	id := d.next
	d.next++
	if op.Kind == Mkdir {
		d.inodes[id] = newDir()
	} else {
		d.inodes[id] = newFile()
	}
	dir.change(change{op.Name: id})
	return id, 0
}

func (d *Disk) remove(dir *inode, op Op) syscall.Errno {
	id, ok := dir.entries[op.Name]
	if !ok {
		return syscall.ENOENT
	}
	if len(d.inodes[id].entries) > 0 {
		return syscall.ENOTEMPTY
	}
	dir.change(change{op.Name: 0})
	return 0
}

// rename moves an entry. Between directories it is two changes that a power cut
// may separate, as POSIX allows.
func (d *Disk) rename(dir *inode, op Op) syscall.Errno {
	id, ok := dir.entries[op.Name]
	to := d.inodes[op.To]
	if !ok || to == nil {
		return syscall.ENOENT
	}
	if old, ok := to.entries[op.Name2]; ok && len(d.inodes[old].entries) > 0 {
		return syscall.ENOTEMPTY
	}
	if op.To == op.Node {
		dir.change(change{op.Name: 0, op.Name2: id})
		return 0
	}
	to.change(change{op.Name2: id})
	dir.change(change{op.Name: 0})
	return 0
}

func (n *inode) change(c change) {
	c.applyTo(n.entries)
	n.pending = append(n.pending, c)
}

func (c change) applyTo(entries map[string]ID) {
	for name, id := range c {
		if id == 0 {
			delete(entries, name)
		} else {
			entries[name] = id
		}
	}
}

func (n *inode) write(off int64, data []byte) {
	if end := int(off) + len(data); end > len(n.data) {
		n.resize(end)
	}
	copy(n.data[off:], data)
	if len(data) == 0 {
		return
	}
	for p := int(off) / pageSize; p <= (int(off)+len(data)-1)/pageSize; p++ {
		n.dirty[p] = true
	}
}

func (n *inode) truncate(size int64) {
	for p := int(size) / pageSize; p <= len(n.data)/pageSize; p++ {
		n.dirty[p] = true
	}
	n.resize(int(size))
}

func (n *inode) resize(size int) {
	if size <= len(n.data) {
		clear(n.data[size:])
		n.data = n.data[:size]
		return
	}
	n.data = append(n.data, make([]byte, size-len(n.data))...)
}

func (n *inode) fsync() {
	n.durable = fit(n.durable, len(n.data))
	for p := range n.dirty {
		n.copyPage(n.durable, p)
	}
	clear(n.dirty)
}

func fit(b []byte, size int) []byte {
	if size <= len(b) {
		return b[:size:size]
	}
	return append(b[:len(b):len(b)], make([]byte, size-len(b))...)
}

func (n *inode) copyPage(to []byte, p int) {
	from, end := p*pageSize, min((p+1)*pageSize, len(n.data), len(to))
	if from < end {
		copy(to[from:end], n.data[from:end])
	}
}

// Load copies the files of a real directory to the disk, as durable, without the
// marks.
func (d *Disk) Load(from string) error { return d.load(Root, from) }

func (d *Disk) load(to ID, from string) error {
	all, err := os.ReadDir(from)
	if err != nil {
		return err
	}
	for _, e := range all {
		path := filepath.Join(from, e.Name())
		if e.Name() == MarkName {
			continue
		}
		if e.IsDir() {
			id, _ := d.do(Op{Kind: Mkdir, Node: to, Name: e.Name()})
			if err := d.load(id, path); err != nil {
				return err
			}
			continue
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		id, errno := d.do(Op{Kind: Create, Node: to, Name: e.Name()})
		if errno != 0 {
			return errno
		}
		for _, op := range []Op{{Kind: Write, Node: id, Data: data}, {Kind: Fsync, Node: id}} {
			if _, errno := d.do(op); errno != 0 {
				return errno
			}
		}
	}
	if _, errno := d.do(Op{Kind: FsyncDir, Node: to}); errno != 0 {
		return errno
	}
	return nil
}

// Mark records a mark, like a write to MarkName, for a test that itself observes the
// acknowledgements of the program under test.
func (d *Disk) Mark(text string) {
	_, _ = d.do(Op{Kind: Mark, Node: Root, Data: []byte(text)}) // a disk without power has no marks
}

// Cut turns the power off: from now on every operation fails.
func (d *Disk) Cut() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.dead = true
}

// Journal returns the operations so far.
func (d *Disk) Journal() []Op {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.journal[:len(d.journal):len(d.journal)]
}
