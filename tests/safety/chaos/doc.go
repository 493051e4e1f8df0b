// Package chaos runs real zkgo processes as an ensemble, injects faults around them while clients
// work, and checks the replies against the guarantees of the protocol.
//
// Every connection from one server to another and from a client to a server goes
// through a proxy (faultnet). The servers' lists name the proxies; each server
// listens on another address, set by quorumListenAddress. All addresses are on
// the loopback network and belong to this run alone.
//
// A Run injects one fault after the other, in an order fixed by its seed, and each fault
// must be seen to have happened: a killed leader by the epoch of the next, a stopped
// process by its state in the kernel, a damaged log by the message of the server that
// refuses it. If we didn't see a promised fault or election, or if the clients did too
// little, the run proves nothing. We call it void and treat it as a failure.
//
// The package needs Linux; faultnet does not. Disks are filled in a tmpfs if that
// can be mounted, and otherwise by a limit on the size of files.
package chaos
