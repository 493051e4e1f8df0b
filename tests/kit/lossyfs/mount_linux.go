package lossyfs

import (
	"fmt"
	"slices"
	"sync"
	"syscall"

	"github.com/hanwen/go-fuse/v2/fuse"
)

// Mounted is a mounted disk.
type Mounted struct {
	*Disk
	Dir    string
	server *fuse.Server
	once   sync.Once
}

// Mount mounts a disk at an existing directory. It needs root and /dev/fuse, but
// no helper program.
func Mount(d *Disk, dir string) (*Mounted, error) {
	fs := &fuseFS{RawFileSystem: fuse.NewDefaultRawFileSystem(), disk: d, dirs: map[uint64][]dirent{}}
	server, err := fuse.NewServer(fs, dir, &fuse.MountOptions{
		DirectMountStrict:  true,
		FsName:             "lossyfs",
		Name:               "lossyfs",
		DisableXAttrs:      true,
		DisableReadDirPlus: true,
		MaxWrite:           1 << 20,
	})
	if err != nil {
		return nil, fmt.Errorf("mounting at %s: %w", dir, err)
	}
	go server.Serve()
	if err := server.WaitMount(); err != nil {
		return nil, err
	}
	return &Mounted{Disk: d, Dir: dir, server: server}, nil
}

// Unmount unmounts the disk, lazily if a process still uses it.
func (m *Mounted) Unmount() (err error) {
	m.once.Do(func() {
		if err = m.server.Unmount(); err != nil {
			err = syscall.Unmount(m.Dir, syscall.MNT_DETACH)
		}
	})
	return err
}

// fuseFS translates FUSE requests. The kernel caches nothing except mapped pages.
type fuseFS struct {
	fuse.RawFileSystem
	disk *Disk

	mu    sync.Mutex
	dirs  map[uint64][]dirent // by handle
	lastH uint64
}

type dirent struct {
	name string
	id   ID
	dir  bool
}

func (f *fuseFS) String() string { return "lossyfs" }

func (f *fuseFS) attr(id ID, out *fuse.Attr) fuse.Status {
	f.disk.mu.Lock()
	defer f.disk.mu.Unlock()
	n := f.disk.inodes[id]
	if n == nil {
		return fuse.ENOENT
	}
	*out = fuse.Attr{Ino: uint64(id), Mode: syscall.S_IFREG | 0o640, Nlink: 1, Size: uint64(len(n.data)), Blksize: pageSize}
	if n.dir {
		out.Mode, out.Nlink = syscall.S_IFDIR|0o750, 2
	}
	return fuse.OK
}

func (f *fuseFS) entry(id ID, out *fuse.EntryOut) fuse.Status {
	out.NodeId = uint64(id)
	return f.attr(id, &out.Attr)
}

func (f *fuseFS) Lookup(_ <-chan struct{}, h *fuse.InHeader, name string, out *fuse.EntryOut) fuse.Status {
	f.disk.mu.Lock()
	dir, dead := f.disk.inodes[ID(h.NodeId)], f.disk.dead
	var id ID
	if dir != nil {
		id = dir.entries[name]
	}
	f.disk.mu.Unlock()
	switch {
	case dead:
		return fuse.EIO
	case id == 0:
		return fuse.ENOENT
	}
	return f.entry(id, out)
}

func (f *fuseFS) GetAttr(_ <-chan struct{}, in *fuse.GetAttrIn, out *fuse.AttrOut) fuse.Status {
	return f.attr(ID(in.NodeId), &out.Attr)
}

func (f *fuseFS) SetAttr(_ <-chan struct{}, in *fuse.SetAttrIn, out *fuse.AttrOut) fuse.Status {
	if size, ok := in.GetSize(); ok {
		if _, errno := f.disk.do(Op{Kind: Truncate, Node: ID(in.NodeId), Off: int64(size)}); errno != 0 {
			return fuse.Status(errno)
		}
	}
	return f.attr(ID(in.NodeId), &out.Attr)
}

func (f *fuseFS) Mkdir(_ <-chan struct{}, in *fuse.MkdirIn, name string, out *fuse.EntryOut) fuse.Status {
	id, errno := f.disk.do(Op{Kind: Mkdir, Node: ID(in.NodeId), Name: name})
	if errno != 0 {
		return fuse.Status(errno)
	}
	return f.entry(id, out)
}

func (f *fuseFS) Create(_ <-chan struct{}, in *fuse.CreateIn, name string, out *fuse.CreateOut) fuse.Status {
	id, errno := f.disk.do(Op{Kind: Create, Node: ID(in.NodeId), Name: name, Excl: in.Flags&syscall.O_EXCL != 0})
	if errno != 0 {
		return fuse.Status(errno)
	}
	if ID(in.NodeId) == Root && name == MarkName {
		f.disk.mu.Lock()
		f.disk.marks = id
		f.disk.mu.Unlock()
		out.OpenFlags = fuse.FOPEN_DIRECT_IO
	}
	return f.entry(id, &out.EntryOut)
}

func (f *fuseFS) Unlink(_ <-chan struct{}, h *fuse.InHeader, name string) fuse.Status {
	_, errno := f.disk.do(Op{Kind: Remove, Node: ID(h.NodeId), Name: name})
	return fuse.Status(errno)
}

func (f *fuseFS) Rmdir(c <-chan struct{}, h *fuse.InHeader, name string) fuse.Status {
	return f.Unlink(c, h, name)
}

func (f *fuseFS) Rename(_ <-chan struct{}, in *fuse.RenameIn, from, to string) fuse.Status {
	if in.Flags != 0 {
		return fuse.EINVAL
	}
	_, errno := f.disk.do(Op{Kind: Rename, Node: ID(in.NodeId), Name: from, To: ID(in.Newdir), Name2: to})
	return fuse.Status(errno)
}

func (f *fuseFS) Open(_ <-chan struct{}, in *fuse.OpenIn, out *fuse.OpenOut) fuse.Status {
	out.OpenFlags = fuse.FOPEN_KEEP_CACHE
	return fuse.OK
}

func (f *fuseFS) Read(_ <-chan struct{}, in *fuse.ReadIn, buf []byte) (fuse.ReadResult, fuse.Status) {
	f.disk.mu.Lock()
	defer f.disk.mu.Unlock()
	n := f.disk.inodes[ID(in.NodeId)]
	if f.disk.dead || n == nil {
		return nil, fuse.EIO
	}
	if in.Offset >= uint64(len(n.data)) {
		return fuse.ReadResultData(nil), fuse.OK
	}
	return fuse.ReadResultData(buf[:copy(buf, n.data[in.Offset:])]), fuse.OK
}

func (f *fuseFS) Write(_ <-chan struct{}, in *fuse.WriteIn, data []byte) (uint32, fuse.Status) {
	op := Op{Kind: Write, Node: ID(in.NodeId), Off: int64(in.Offset), Data: slices.Clone(data)}
	f.disk.mu.Lock()
	if op.Node == f.disk.marks {
		op.Kind = Mark
	}
	f.disk.mu.Unlock()
	_, errno := f.disk.do(op)
	return uint32(len(data)), fuse.Status(errno)
}

func (f *fuseFS) Fsync(_ <-chan struct{}, in *fuse.FsyncIn) fuse.Status {
	f.disk.awaitFsync()
	_, errno := f.disk.do(Op{Kind: Fsync, Node: ID(in.NodeId)})
	return fuse.Status(errno)
}

func (f *fuseFS) FsyncDir(_ <-chan struct{}, in *fuse.FsyncIn) fuse.Status {
	f.disk.awaitFsync()
	_, errno := f.disk.do(Op{Kind: FsyncDir, Node: ID(in.NodeId)})
	return fuse.Status(errno)
}

// Flush is close(2): it makes nothing durable.
func (f *fuseFS) Flush(<-chan struct{}, *fuse.FlushIn) fuse.Status { return fuse.OK }

func (f *fuseFS) Access(<-chan struct{}, *fuse.AccessIn) fuse.Status { return fuse.OK }

func (f *fuseFS) OpenDir(_ <-chan struct{}, in *fuse.OpenIn, out *fuse.OpenOut) fuse.Status {
	f.disk.mu.Lock()
	n := f.disk.inodes[ID(in.NodeId)]
	if f.disk.dead || n == nil || !n.dir {
		f.disk.mu.Unlock()
		return fuse.EIO
	}
	var list []dirent
	for _, name := range sortedNames(n.entries) {
		list = append(list, dirent{name, n.entries[name], f.disk.inodes[n.entries[name]].dir})
	}
	f.disk.mu.Unlock()
	f.mu.Lock()
	defer f.mu.Unlock()
	f.lastH++
	out.Fh = f.lastH
	f.dirs[out.Fh] = list
	return fuse.OK
}

func (f *fuseFS) ReadDir(_ <-chan struct{}, in *fuse.ReadIn, out *fuse.DirEntryList) fuse.Status {
	f.mu.Lock()
	list := f.dirs[in.Fh]
	f.mu.Unlock()
	for i := int(in.Offset); i < len(list); i++ {
		mode := uint32(syscall.S_IFREG)
		if list[i].dir {
			mode = syscall.S_IFDIR
		}
		if !out.AddDirEntry(fuse.DirEntry{Name: list[i].name, Ino: uint64(list[i].id), Mode: mode, Off: uint64(i + 1)}) {
			break
		}
	}
	return fuse.OK
}

func (f *fuseFS) ReleaseDir(in *fuse.ReleaseIn) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.dirs, in.Fh)
}

func (f *fuseFS) StatFs(_ <-chan struct{}, _ *fuse.InHeader, out *fuse.StatfsOut) fuse.Status {
	*out = fuse.StatfsOut{Bsize: pageSize, Blocks: 1 << 30, Bfree: 1 << 29, Bavail: 1 << 29, NameLen: 255}
	return fuse.OK
}
