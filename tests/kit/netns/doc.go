// Package netns builds a private network of Linux network namespaces with a
// packet filter between them.
//
// Each Host is a network namespace with one interface, a TUN device. The test process has the other
// end of each device: it reads IP packets from one host and writes them to the host they are
// addressed to. Packets that are not forwarded are lost silently, as with a firewall that drops
// packets. The filter therefore sees every packet between two hosts, and no packet can leave the
// network, because there is no other route.
//
// We filter in this process so that we need neither iptables nor tc nor their kernel
// modules. It sees packets as they are on a wire (at most MTU bytes, never the large ones
// that segmentation offload shows to a filter in the kernel), and it acts at a known time.
// It tracks TCP connections like a stateful firewall: Forget makes it drop the packets of
// established connections, in both directions and permanently, while new ones work.
//
// The package needs root (CAP_SYS_ADMIN and CAP_NET_ADMIN) and /dev/net/tun.
// Namespaces and devices have no names: they end with the processes in them and
// with Net.Close, or with the test process, however it dies.
package netns
