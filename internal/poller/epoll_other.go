//go:build !linux

package poller

import (
	"errors"
	"syscall"
)

// epoll exists only on Linux.
type epoll struct{}

func newEpoll() (*epoll, error) { return nil, errors.ErrUnsupported }

func (*epoll) close()                                  {}
func (*epoll) add(syscall.RawConn, ID) error           { return errors.ErrUnsupported }
func (*epoll) remove(syscall.RawConn) error            { return errors.ErrUnsupported }
func (*epoll) wait(dst []occasion) ([]occasion, error) { return dst, errors.ErrUnsupported }
