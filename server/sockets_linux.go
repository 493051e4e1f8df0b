package server

import (
	"os"
	"syscall"
	"unsafe"
)

// sockets tells which of many sockets have input. It is an epoll instance of its own;
// the runtime's poller waits for it, so waiting blocks no thread.
type sockets struct {
	f      *os.File
	raw    syscall.RawConn
	ready  func(fd uintptr) bool // method value of look, made once
	events []syscall.EpollEvent
	n      int
	err    error
}

// mostReady is how many events wait gets at a time.
const mostReady = 128

// newSockets returns an empty set of sockets.
func newSockets() (*sockets, error) {
	fd, err := syscall.EpollCreate1(syscall.EPOLL_CLOEXEC)
	if err != nil {
		return nil, os.NewSyscallError("epoll_create1", err)
	}
	if err := syscall.SetNonblock(fd, true); err != nil {
		_ = syscall.Close(fd)
		return nil, os.NewSyscallError("fcntl", err)
	}
	s := &sockets{f: os.NewFile(uintptr(fd), "epoll"), events: make([]syscall.EpollEvent, mostReady)}
	s.ready = s.look
	if s.raw, err = s.f.SyscallConn(); err != nil {
		_ = s.f.Close()
		return nil, err
	}
	return s, nil
}

// close ends wait.
func (s *sockets) close() { _ = s.f.Close() }

// add makes wait report id whenever input arrives on the socket, or is already there.
func (s *sockets) add(socket syscall.RawConn, id int32) error {
	const edges = syscall.EPOLLET & 0xffffffff // edge-triggered: one event for new input, not until it has been read
	return s.control(socket, syscall.EPOLL_CTL_ADD, &syscall.EpollEvent{Events: syscall.EPOLLIN | syscall.EPOLLRDHUP | edges, Fd: id})
}

// remove undoes add. Closing a socket also removes it.
func (s *sockets) remove(socket syscall.RawConn) error {
	return s.control(socket, syscall.EPOLL_CTL_DEL, nil)
}

func (s *sockets) control(socket syscall.RawConn, op int, e *syscall.EpollEvent) error {
	var failed error
	err := socket.Control(func(fd uintptr) {
		err := s.raw.Control(func(ep uintptr) { failed = syscall.EpollCtl(int(ep), op, int(fd), e) })
		if err != nil {
			failed = err
		}
	})
	if err != nil {
		return err
	}
	return os.NewSyscallError("epoll_ctl", failed)
}

// wait waits until a socket has input and appends the events to dst. Only one goroutine
// at a time may call it.
func (s *sockets) wait(dst []call) ([]call, error) {
	if err := s.raw.Read(s.ready); err != nil {
		return dst, err
	}
	for _, e := range s.events[:s.n] {
		const ends = syscall.EPOLLRDHUP | syscall.EPOLLHUP | syscall.EPOLLERR
		dst = append(dst, call{id: e.Fd, last: e.Events&ends != 0})
	}
	return dst, s.err
}

// look polls without waiting. As in recv, it bypasses the scheduler: on an idle server,
// informing it would wake its monitor thread for each request.
func (s *sockets) look(fd uintptr) bool {
	n, _, e := syscall.RawSyscall6(syscall.SYS_EPOLL_PWAIT, fd, uintptr(unsafe.Pointer(&s.events[0])), uintptr(len(s.events)), 0, 0, 0)
	s.n, s.err = int(n), nil
	if e != 0 {
		s.n = 0
		if e != syscall.EINTR {
			s.err = os.NewSyscallError("epoll_pwait", e)
		}
	}
	return s.n != 0 || s.err != nil
}
