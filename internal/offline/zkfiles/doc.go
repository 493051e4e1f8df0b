// Package zkfiles reads and writes the files that Apache ZooKeeper keeps in a
// data directory: snapshots (3.4 to 3.9; plain, gzip or snappy) and transaction
// logs. What they hold becomes a tree and a table of sessions of ours, and the
// other way round.
//
// # Use
//
//   - [WriteSnapshot] writes a tree.Snapshot and sessions as ZooKeeper's
//     snapshot file; ZooKeeper 3.4 to 3.9 load it.
//   - [ReadSnapshot] makes a tree and sessions of one such file.
//   - [Load] does what ZooKeeper does at its start with a whole directory: the
//     newest good snapshot, and the logs behind it. [State.Fill] makes a tree and
//     sessions of the result.
//   - [ReadLog] walks over the transactions of one log file.
//
// # A snapshot of ZooKeeper alone is not a state
//
// ZooKeeper writes a snapshot while transactions go on, so what is in it is no
// state that there ever was: each znode is as it was at some time between the
// zxid in the file's name and the end of the writing. Only with the transactions
// of that time applied again does it become one. [State.Apply] does that, with
// ZooKeeper's own rules for what is there already or is not there any more. The
// digest that ZooKeeper 3.6 and later leave in snapshots and logs tells whether
// it worked, and is compared.
//
// # Invariants
//
//   - What cannot be read is an error that names file, offset and cause. Nothing
//     is left out in silence; what ZooKeeper itself passes over, like the torn
//     end of a log, is reported.
//   - A length that lies costs no more memory than the bytes that are there.
//   - What is written has no fuzziness: it is the state at one zxid, with the
//     digest of that zxid.
//
// The package imports proto, tree and session, and a library for snappy. It
// knows no server and no log of ours, starts no goroutine and writes to no file
// by itself. Nothing in it is safe for concurrent use but the functions.
package zkfiles
