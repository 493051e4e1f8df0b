// Package queue passes items from producers to consumers: [Queue] is first in, first
// out, [Priority], [Delay] and [ID] use other orders, and [Simple] has plain data.
//
//	q := queue.New(recipes.On(c), "/queues/mail")
//	err := q.Put(ctx, []byte("letter"))
//	…
//	for item, err := range q.Items(ctx) {
//		if err != nil {
//			return err
//		}
//		if err := send(item.Values[0]); err != nil {
//			_ = item.Return(ctx)
//			continue
//		}
//		err = item.Ack(ctx)
//	}
//
// # Rules
//
// The package imports recipes/election, recipes and client. Invariants:
//
//   - We remove an item only in the transaction that also ends its consumer's claim, in the
//     session of the claim. When the session ends, the claim ends, and other consumers can
//     claim the item. As a result, each item is processed at least once, and by one consumer
//     at a time as long as consumers watch Done.
//   - If the reply to a Put was lost, the Put may or may not have been executed. The layout
//     has no place for a mark, so we can't find out, and the error is
//     [client.ErrUnknownOutcome]. The Put was executed at most once.
//   - A Sharder adds a queue only in a transaction that also checks that the sharder is the
//     leader.
//   - We use Curator's znodes (DistributedQueue and its variants with a lock path,
//     SimpleDistributedQueue and QueueSharder), and encode items as its ItemSerializer
//     does.
package queue
