package failover

import "github.com/zkgo/zkgo/tests/kit/lossyfs"

// disk is a file system that is mounted for one server and can delay fsync.
type disk struct{ *lossyfs.Mounted }

// mountDisk mounts a disk at a directory. It requires root.
func mountDisk(dir string) (*disk, error) {
	m, err := lossyfs.Mount(lossyfs.NewDisk(lossyfs.Faults{NoJournal: true}), dir)
	if err != nil {
		return nil, err
	}
	return &disk{m}, nil
}
