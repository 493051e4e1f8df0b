package poller

import (
	"os"
	"syscall"
	"unsafe"
)

// epoll is an epoll instance. We let the runtime's poller wait for it, so that waiting
// blocks no thread.
type epoll struct {
	f      *os.File
	raw    syscall.RawConn
	ready  func(fd uintptr) bool // method value of poll, made once
	events []syscall.EpollEvent
	n      int
	err    error
}

// mostReady is how many events wait gets at a time.
const mostReady = 128

// newEpoll returns an instance without sockets.
func newEpoll() (*epoll, error) {
	fd, err := syscall.EpollCreate1(syscall.EPOLL_CLOEXEC)
	if err != nil {
		return nil, os.NewSyscallError("epoll_create1", err)
	}
	if err := syscall.SetNonblock(fd, true); err != nil {
		_ = syscall.Close(fd)
		return nil, os.NewSyscallError("fcntl", err)
	}
	e := &epoll{f: os.NewFile(uintptr(fd), "epoll"), events: make([]syscall.EpollEvent, mostReady)}
	e.ready = e.poll
	if e.raw, err = e.f.SyscallConn(); err != nil {
		_ = e.f.Close()
		return nil, err
	}
	return e, nil
}

// close ends wait.
func (e *epoll) close() { _ = e.f.Close() }

// add makes wait report id whenever input arrives on the socket, or has already arrived.
func (e *epoll) add(socket syscall.RawConn, id ID) error {
	const edges = syscall.EPOLLET & 0xffffffff // edge-triggered: one event for new input, not repeated until it is read
	return e.control(socket, syscall.EPOLL_CTL_ADD, &syscall.EpollEvent{Events: syscall.EPOLLIN | syscall.EPOLLRDHUP | edges, Fd: int32(id)})
}

// remove undoes add. Closing a socket also removes it.
func (e *epoll) remove(socket syscall.RawConn) error {
	return e.control(socket, syscall.EPOLL_CTL_DEL, nil)
}

func (e *epoll) control(socket syscall.RawConn, op int, event *syscall.EpollEvent) error {
	var failed error
	err := socket.Control(func(fd uintptr) {
		err := e.raw.Control(func(ep uintptr) { failed = syscall.EpollCtl(int(ep), op, int(fd), event) })
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
func (e *epoll) wait(dst []occasion) ([]occasion, error) {
	if err := e.raw.Read(e.ready); err != nil {
		return dst, err
	}
	for _, one := range e.events[:e.n] {
		const ends = syscall.EPOLLRDHUP | syscall.EPOLLHUP | syscall.EPOLLERR
		dst = append(dst, occasion{id: ID(one.Fd), hungUp: one.Events&ends != 0})
	}
	return dst, e.err
}

// poll gets the events from the kernel without waiting. As in Recv, we bypass the scheduler:
// on an idle server, a normal system call would wake the scheduler's monitor thread for each
// request.
func (e *epoll) poll(fd uintptr) bool {
	n, _, errno := syscall.RawSyscall6(syscall.SYS_EPOLL_PWAIT, fd, uintptr(unsafe.Pointer(&e.events[0])), uintptr(len(e.events)), 0, 0, 0)
	e.n, e.err = int(n), nil
	if errno != 0 {
		e.n = 0
		if errno != syscall.EINTR {
			e.err = os.NewSyscallError("epoll_pwait", errno)
		}
	}
	return e.n != 0 || e.err != nil
}
