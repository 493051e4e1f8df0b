//go:build !linux

package server

import (
	"errors"
	"syscall"
)

// sockets works only on Linux: elsewhere each connection has a goroutine.
type sockets struct{}

func newSockets() (*sockets, error) { return nil, errors.ErrUnsupported }

func (*sockets) close()                           {}
func (*sockets) add(syscall.RawConn, int32) error { return errors.ErrUnsupported }
func (*sockets) remove(syscall.RawConn) error     { return errors.ErrUnsupported }
func (*sockets) wait(dst []call) ([]call, error)  { return dst, errors.ErrUnsupported }
