package lossyfs

import (
	"maps"
	"math/rand/v2"
	"slices"
	"syscall"
)

// This file is the disk without a kernel, for programs that reach it through an
// interface instead of a mount.

// NewMemory returns an empty disk that keeps no journal.
func NewMemory() *Disk {
	d := NewDisk(Faults{})
	d.replay = true
	return d
}

// Do executes an operation. For Create it returns the file, whether it is new or
// not.
func (d *Disk) Do(op Op) (ID, syscall.Errno) { return d.do(op) }

// Lookup returns the inode that a directory entry refers to.
func (d *Disk) Lookup(dir ID, name string) (id ID, isDir, ok bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	n := d.inodes[dir]
	if n == nil || !n.dir {
		return 0, false, false
	}
	id, ok = n.entries[name]
	return id, ok && d.inodes[id].dir, ok
}

// Names returns the entries of a directory in order.
func (d *Disk) Names(dir ID) []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return sortedNames(d.inodes[dir].entries)
}

// Size returns the length of a file.
func (d *Disk) Size(file ID) int64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	return int64(len(d.inodes[file].data))
}

// ReadAt copies the data at off into b and returns the number of bytes.
func (d *Disk) ReadAt(file ID, b []byte, off int64) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	data := d.inodes[file].data
	if off >= int64(len(data)) {
		return 0
	}
	return copy(b, data[off:])
}

// AfterCut returns the disk as a power cut now would leave it, with luck as in
// Export; the disk itself continues.
func (d *Disk) AfterCut(luck *rand.Rand) *Disk {
	return d.copy(func(n *inode) *inode {
		if !n.dir {
			data := slices.Clone(n.afterCut(luck))
			return &inode{data: data, durable: slices.Clone(data), dirty: map[int]bool{}}
		}
		entries := maps.Clone(n.kept)
		if luck != nil {
			for _, c := range n.pending[:luck.IntN(len(n.pending)+1)] {
				c.applyTo(entries)
			}
		}
		return &inode{dir: true, entries: entries, kept: maps.Clone(entries)}
	})
}

// Clone returns a copy with everything that a running kernel knows: the state
// after a process has ended.
func (d *Disk) Clone() *Disk {
	return d.copy(func(n *inode) *inode {
		return &inode{
			dir: n.dir, data: slices.Clone(n.data), durable: slices.Clone(n.durable), dirty: maps.Clone(n.dirty),
			entries: maps.Clone(n.entries), kept: maps.Clone(n.kept), pending: slices.Clone(n.pending),
		}
	})
}

// copy copies every inode, in the order of their numbers.
func (d *Disk) copy(one func(*inode) *inode) *Disk {
	d.mu.Lock()
	defer d.mu.Unlock()
	to := NewMemory()
	to.next = d.next
	for _, id := range slices.Sorted(maps.Keys(d.inodes)) {
		to.inodes[id] = one(d.inodes[id])
	}
	to.collect()
	return to
}

// collect drops inodes that no name refers to.
func (d *Disk) collect() {
	reached := map[ID]bool{}
	var walk func(id ID)
	walk = func(id ID) {
		n := d.inodes[id]
		if n == nil || reached[id] {
			return
		}
		reached[id] = true
		for _, to := range n.entries {
			walk(to)
		}
		for _, to := range n.kept {
			walk(to)
		}
		for _, c := range n.pending {
			for _, to := range c {
				walk(to)
			}
		}
	}
	walk(Root)
	maps.DeleteFunc(d.inodes, func(id ID, _ *inode) bool { return !reached[id] })
}
