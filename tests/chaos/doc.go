// Package chaos runs real zkgo processes as an ensemble, breaks what can break
// around them while clients work, and holds what the clients saw against what
// a server may ever tell.
//
// Every way from one server to another and from a client to a server leads
// through a proxy of its own (faultnet). The servers' lists name the proxies;
// each server listens elsewhere, by quorumListenAddress. All of that is on
// addresses of the loopback network that belong to one run alone.
//
// A Run plants one fault after the other, in an order that its seed fixes, and
// each fault has to be seen to have happened: a killed leader by the epoch of
// the next, a stopped process by what the kernel says of it, a damaged log by
// the message of the server that refuses it. A run in which a promised fault or
// election was not seen, or in which too little was done, shows nothing: it is
// void, and that is a failure.
//
// It needs Linux; faultnet does not. Disks are filled in a tmpfs when that can
// be mounted, by a limit on the size of files otherwise.
package chaos
