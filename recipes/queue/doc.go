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
//   - An item leaves the queue only in the transaction that also ends its consumer's
//     claim, in the session of the claim. When the session ends, the claim ends, and
//     other consumers can take the item. So an item is processed at least once, and
//     by one consumer at a time as long as consumers heed Done.
//   - A Put whose reply was lost may have been done: the layout has no room for a
//     mark, so the error says [client.ErrUnknownOutcome]. The Put was done at most
//     once.
//   - A Sharder adds a queue only in a transaction that also checks that the sharder
//     leads.
//   - The znodes are Curator's (DistributedQueue and its variants with a lock path,
//     SimpleDistributedQueue and QueueSharder), and items are encoded like those of
//     its ItemSerializer.
package queue
