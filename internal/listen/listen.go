package listen

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Port is an address to listen on and the setting that names it.
type Port struct{ Setting, Addr string }

// At returns the Port of a setting.
func At(setting, addr string) Port { return Port{Setting: setting, Addr: addr} }

// TCP listens on an address.
func TCP(addr string) (net.Listener, error) { return net.Listen("tcp", addr) }

// PortOf returns the port of an address, or −1.
func PortOf(addr string) int {
	_, port, err := net.SplitHostPort(addr)
	if err != nil {
		return -1
	}
	n, err := strconv.Atoi(port)
	if err != nil {
		return -1
	}
	return n
}

// Overlap reports whether one host can't listen on both addresses. It resolves no
// names: two different names count as two hosts, even if they are the same.
func Overlap(a, b string) bool {
	hostA, portA, errA := net.SplitHostPort(a)
	hostB, portB, errB := net.SplitHostPort(b)
	if errA != nil || errB != nil || portA != portB || portA == "0" {
		return false
	}
	return everyHost(hostA) || everyHost(hostB) || strings.EqualFold(hostA, hostB)
}

func everyHost(host string) bool {
	ip := net.ParseIP(host)
	return host == "" || ip != nil && ip.IsUnspecified()
}

// lookupTimeout bounds the time in which CheckHosts resolves names.
const lookupTimeout = 2 * time.Second

// CheckHosts returns an error for each port with a host that this machine can't listen on.
// To find out, it listens on a free port of each host for a moment.
func CheckHosts(ctx context.Context, ports []Port) []error {
	ctx, cancel := context.WithTimeout(ctx, lookupTimeout)
	defer cancel()
	errs := make([]error, len(ports))
	var wg sync.WaitGroup
	for i, p := range ports {
		wg.Go(func() { errs[i] = p.checkHost(ctx) })
	}
	wg.Wait()
	return slices.DeleteFunc(errs, func(err error) bool { return err == nil })
}

// checkHost reports that this machine can't listen on the host of the address.
func (p Port) checkHost(ctx context.Context) error {
	host, _, err := net.SplitHostPort(p.Addr)
	if err != nil || everyHost(host) {
		return nil
	}
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", net.JoinHostPort(host, "0"))
	if err == nil {
		return l.Close()
	}
	if problem := HostProblem(err); problem != "" {
		return fmt.Errorf("%s: %s", p.Setting, problem)
	}
	return fmt.Errorf("%s: cannot listen on %s: %w", p.Setting, host, err)
}

// wsaEAddrNotAvail is Windows' error number for EADDRNOTAVAIL.
const wsaEAddrNotAvail = syscall.Errno(10049)

// HostProblem describes an error of listening that another port doesn't fix: the name
// of the host doesn't resolve, or its address is one of another machine. It returns ""
// for other errors.
func HostProblem(err error) string {
	var listen *net.OpError
	if !errors.As(err, &listen) || listen.Op != "listen" {
		return ""
	}
	var lookup *net.DNSError
	if errors.As(listen, &lookup) {
		return fmt.Sprintf("the name %s does not resolve: %s", lookup.Name, lookup.Err)
	}
	var errno syscall.Errno
	if errors.As(listen, &errno) && (errno == syscall.EADDRNOTAVAIL || errno == wsaEAddrNotAvail) {
		host := fmt.Sprint(listen.Addr)
		if addr, ok := listen.Addr.(*net.TCPAddr); ok {
			host = addr.IP.String()
		}
		return host + " is not an address of this machine"
	}
	return ""
}

// wsaEAddrInUse is WSAEADDRINUSE, the error number on Windows.
const wsaEAddrInUse syscall.Errno = 10048

// InUse reports whether an error means that the port is in use.
func InUse(err error) bool {
	var errno syscall.Errno
	return errors.As(err, &errno) && (errno == syscall.EADDRINUSE || errno == wsaEAddrInUse)
}
