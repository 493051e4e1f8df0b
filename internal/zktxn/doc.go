// Package zktxn decodes the transactions of Apache ZooKeeper 3.4 to 3.9, as they are in its log
// and in the packets of its leader (zookeeper.jute: TxnHeader and the records after it,
// org.apache.zookeeper.server.util.SerializeUtils), and computes the passwords of its sessions.
//
// # Invariants
//
//   - A decoded transaction shares no memory with its source.
//   - A length in the source never makes us allocate more memory than the source has bytes.
//
// May import: of this module proto and tree. Its functions are safe for concurrent use.
package zktxn
