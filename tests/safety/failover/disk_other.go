//go:build !linux

package failover

import "errors"

type disk struct{}

func mountDisk(string) (*disk, error) { return nil, errors.New("disks that hang work on Linux only") }

// HoldFsyncs is never called: there is no disk.
func (*disk) HoldFsyncs() (release func()) { return func() {} }

// Unmount is never called: there is no disk.
func (*disk) Unmount() error { return nil }
