// Package zab encodes and decodes the packets that a learner and a leader of ZooKeeper exchange
// (org.apache.zookeeper.server.quorum: QuorumPacket, Leader, QuorumAuthPacket), for both sides.
//
// # Invariants
//
//   - A length that arrives never makes us allocate more memory than bytes have arrived, and
//     none exceeds the caller's limit.
//
// May import: of this module proto.
package zab
