package netns

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

// Host is one network namespace. Its methods may be called concurrently.
type Host struct {
	name string
	addr netip.Addr
	ns   *os.File // the namespace
	tun  *os.File // packets that the host sends and receives
}

const (
	tunDevice = "/dev/net/tun"
	device    = "net0" // name of the interface in every host
)

// Name returns the name of the host in its Net.
func (h *Host) Name() string { return h.name }

// Addr returns the host's address.
func (h *Host) Addr() netip.Addr { return h.addr }

// Usable returns an error if this process cannot create a network, and nil if it
// can.
func Usable() error {
	n := New(0)
	_, err := n.Host("probe")
	return errors.Join(err, n.Close())
}

func newHost(name string, addr netip.Addr) (*Host, error) {
	h := &Host{name: name, addr: addr}
	if err := onThread(h.make); err != nil {
		return nil, errors.Join(err, h.close())
	}
	return h, nil
}

// make moves the thread into a new namespace, and records it in h.
func (h *Host) make() error {
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		return fmt.Errorf("a network namespace takes CAP_SYS_ADMIN: %w", err)
	}
	var err error
	if h.ns, err = os.Open("/proc/thread-self/ns/net"); err != nil {
		return err
	}
	fd, err := unix.Open(tunDevice, unix.O_RDWR|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("%s: %w", tunDevice, err)
	}
	req, err := unix.NewIfreq(device)
	if err == nil {
		req.SetUint16(unix.IFF_TUN | unix.IFF_NO_PI)
		err = unix.IoctlIfreq(fd, unix.TUNSETIFF, req)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("a TUN device: %w", err), unix.Close(fd))
	}
	h.tun = os.NewFile(uintptr(fd), tunDevice)
	return h.configure()
}

// configure gives the interface its address and brings it and the loopback up.
func (h *Host) configure() error {
	s, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(s) //nolint:errcheck // nothing was written to it
	addr := h.addr.As4()
	for _, step := range []struct {
		device  string
		request uint
		set     func(*unix.Ifreq) error
	}{
		{device, unix.SIOCSIFADDR, func(r *unix.Ifreq) error { return r.SetInet4Addr(addr[:]) }},
		{device, unix.SIOCSIFNETMASK, func(r *unix.Ifreq) error { return r.SetInet4Addr([]byte{255, 255, 255, 0}) }},
		{device, unix.SIOCSIFFLAGS, func(r *unix.Ifreq) error { r.SetUint16(unix.IFF_UP | unix.IFF_RUNNING); return nil }},
		{"lo", unix.SIOCSIFFLAGS, func(r *unix.Ifreq) error { r.SetUint16(unix.IFF_UP | unix.IFF_RUNNING); return nil }},
	} {
		req, err := unix.NewIfreq(step.device)
		if err == nil {
			err = step.set(req)
		}
		if err == nil {
			err = unix.IoctlIfreq(s, step.request, req)
		}
		if err != nil {
			return fmt.Errorf("interface %s: %w", step.device, err)
		}
	}
	return nil
}

// receive delivers a packet to the host. If the host's queue is full, the packet
// is lost.
func (h *Host) receive(raw []byte) { _, _ = h.tun.Write(raw) }

func (h *Host) close() error {
	var err error
	if h.tun != nil {
		err = h.tun.Close()
	}
	if h.ns != nil {
		err = errors.Join(err, h.ns.Close())
	}
	return err
}

// Enter moves the calling thread into the host's namespace. The goroutine must
// have locked its thread and must not unlock it. A process started from this
// goroutine, and a socket opened by it, are in the namespace.
func (h *Host) Enter() error {
	if err := unix.Setns(int(h.ns.Fd()), unix.CLONE_NEWNET); err != nil {
		return fmt.Errorf("netns: entering host %s: %w", h.name, err)
	}
	return nil
}

// Do runs f on a thread in the host's namespace and returns its error. Other
// goroutines that f starts are not in the namespace.
func (h *Host) Do(f func() error) error {
	return onThread(func() error {
		if err := h.Enter(); err != nil {
			return err
		}
		return f()
	})
}

// onThread runs f on a thread that ends when f returns. The main thread never ends, so f doesn't
// run there.
func onThread(f func() error) error {
	done := make(chan error)
	go func() {
		runtime.LockOSThread()
		if unix.Gettid() != unix.Getpid() {
			done <- f()
			return
		}
		done <- onThread(f)
		runtime.UnlockOSThread()
	}()
	return <-done
}

// Dial opens a TCP connection from the host to a literal address and port.
func (h *Host) Dial(ctx context.Context, addr string) (conn net.Conn, err error) {
	err = h.Do(func() error {
		var d net.Dialer
		conn, err = d.DialContext(ctx, "tcp4", addr)
		return err
	})
	return conn, err
}

// Listen opens a TCP port of the host.
func (h *Host) Listen(addr string) (ln net.Listener, err error) {
	err = h.Do(func() error {
		ln, err = net.Listen("tcp4", addr)
		return err
	})
	return ln, err
}
