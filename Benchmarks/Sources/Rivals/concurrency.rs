//! tokio at the rows of Swift Concurrency (bench-concurrency) whose shape it has; passes, operations and checks are
//! those of the Swift rows.

use std::future::Future;
use std::pin::Pin;
use std::time::{Duration, Instant};
use tokio::sync::{mpsc, oneshot};
use tokio::task::{spawn, yield_now, JoinSet};
use tokio::time::sleep;

fn verify(observed: usize, expected: usize, what: &str) {
    if observed != expected {
        eprintln!("rival failed: {what}: expected {expected}, observed {observed}");
        std::process::exit(70);
    }
}

fn sum_of_indices(count: usize) -> usize {
    count * (count - 1) / 2
}

/// Starts the tasks of a group, waits for all, and adds up what they return.
async fn group<Body>(size: usize, body: impl Fn(usize) -> Body) -> usize
where
    Body: Future<Output = usize> + Send + 'static,
{
    let mut tasks = JoinSet::new();
    for index in 0..size {
        tasks.spawn(body(index));
    }
    let mut sum = 0;
    while let Some(result) = tasks.join_next().await {
        sum += result.unwrap();
    }
    sum
}

fn compute(duration: Duration) {
    let start = Instant::now();
    while !duration.is_zero() && start.elapsed() < duration {}
}

// MARK: Tasks

async fn fan_out(count: usize) {
    let sum = group(count, |index| async move { index }).await;
    verify(sum, sum_of_indices(count), "the sum of the results");
}

async fn groups_of_thousand(count: usize) {
    let groups = (count / 1000).max(1);
    let mut sum = 0;
    for _ in 0..groups {
        sum += group(1000, |index| async move { index }).await;
    }
    verify(sum, groups * sum_of_indices(1000), "the sum of the results");
}

async fn twenty_microsecond_tasks(count: usize) {
    let groups = (count / 16).max(1);
    let mut done = 0;
    for _ in 0..groups {
        done += group(16, |_| async {
            compute(Duration::from_micros(20));
            1
        })
        .await;
    }
    verify(done, groups * 16, "tasks");
}

async fn async_let(count: usize) {
    let mut sum = 0;
    for index in 0..count / 2 {
        let even = spawn(async move { 2 * index });
        let odd = spawn(async move { 2 * index + 1 });
        sum += even.await.unwrap() + odd.await.unwrap();
    }
    verify(sum, sum_of_indices(count / 2 * 2), "the sum of both");
}

fn tree(depth: usize) -> Pin<Box<dyn Future<Output = usize> + Send>> {
    Box::pin(async move {
        if depth == 0 {
            return 1;
        }
        let left = spawn(tree(depth - 1));
        let right = spawn(tree(depth - 1));
        left.await.unwrap() + right.await.unwrap() + 1
    })
}

async fn async_let_tree(count: usize) {
    let trees = (count / 2047).max(1);
    let mut functions = 0;
    for _ in 0..trees {
        functions += tree(10).await;
    }
    verify(functions, trees * 2047, "functions");
}

async fn detached(count: usize, work: Duration) {
    let mut sum = 0;
    for index in 0..count {
        let task = spawn(async move {
            compute(work);
            index
        });
        sum += task.await.unwrap();
        compute(work);
    }
    verify(sum, sum_of_indices(count), "the sum of the results");
}

async fn yields(count: usize) {
    let yields = group(4, |_| async move {
        for _ in 0..count / 4 {
            yield_now().await;
        }
        count / 4
    })
    .await;
    verify(yields, count / 4 * 4, "yields");
}

async fn sleep_storm(count: usize) {
    let millisecond = Duration::from_millis(1);
    let awake = group(count, |_| async move {
        let asleep = Instant::now();
        sleep(millisecond).await;
        (asleep.elapsed() >= millisecond) as usize
    })
    .await;
    verify(awake, count, "tasks that did not wake early");
}

async fn cancelled(count: usize) {
    let mut tasks = JoinSet::new();
    for _ in 0..count {
        tasks.spawn(sleep(Duration::from_secs(3600)));
    }
    tasks.abort_all();
    let mut cancelled = 0;
    while let Some(result) = tasks.join_next().await {
        cancelled += result.map_or_else(|error| error.is_cancelled() as usize, |_| 0);
    }
    verify(cancelled, count, "cancelled tasks");
}

/// A task that runs functions one after the other stands for the serial queue.
async fn continuation(count: usize) {
    let (queue, mut callbacks) = mpsc::unbounded_channel::<Box<dyn FnOnce() + Send>>();
    spawn(async move {
        while let Some(callback) = callbacks.recv().await {
            callback();
        }
    });
    let mut sum = 0;
    for index in 0..count {
        let (continuation, value) = oneshot::channel();
        let callback = Box::new(move || continuation.send(index).unwrap());
        queue.send(callback).ok().unwrap();
        sum += value.await.unwrap();
    }
    verify(sum, sum_of_indices(count), "the sum of the callbacks' values");
}

// MARK: Actors

/// A task that answers requests one after the other stands for the actor.
async fn contended_actor(callers: usize, count: usize) {
    let (shared, mut requests) = mpsc::unbounded_channel::<oneshot::Sender<()>>();
    let actor = spawn(async move {
        let mut strokes = 0;
        while let Some(answer) = requests.recv().await {
            strokes += 1;
            answer.send(()).unwrap();
        }
        strokes
    });
    group(callers, |_| {
        let shared = shared.clone();
        async move {
            for _ in 0..count / callers {
                let (request, answer) = oneshot::channel();
                shared.send(request).unwrap();
                answer.await.unwrap();
            }
            0
        }
    })
    .await;
    drop(shared);
    verify(actor.await.unwrap(), count / callers * callers, "strokes that excluded each other");
}

// MARK: Hand-overs

async fn stream(count: usize) {
    let (numbers, mut stream) = mpsc::unbounded_channel();
    let reader = spawn(async move {
        let mut sum = 0;
        while let Some(number) = stream.recv().await {
            sum += number;
        }
        sum
    });
    for index in 0..count {
        numbers.send(index).unwrap();
    }
    drop(numbers);
    verify(reader.await.unwrap(), sum_of_indices(count), "the sum of the numbers read");
}

// MARK: Program

const ROWS: [(&str, usize, &str); 16] = [
    ("task-group-fan-out", 1_000_000, "a JoinSet"),
    ("task-groups-of-thousand", 200_000, "a JoinSet"),
    ("twenty-microsecond-tasks", 16_000, "a JoinSet"),
    ("async-let", 200_000, "spawn twice"),
    ("async-let-tree", 204_700, "the same in trees"),
    ("detached-task", 200_000, "spawn"),
    ("task-yield", 400_000, "yield_now"),
    ("task-sleep-storm", 100_000, "sleep"),
    ("cancelled-tasks", 10_000, "abort_all of a JoinSet"),
    ("continuation-from-queue", 50_000, "a task that runs functions, a oneshot for each answer"),
    ("contended-actor-2", 400_000, "a task that answers requests by oneshots"),
    ("contended-actor-8", 400_000, "a task that answers requests by oneshots"),
    ("contended-actor-64", 400_000, "a task that answers requests by oneshots"),
    ("async-stream", 400_000, "an unbounded channel"),
    ("detached-value-on-main-actor", 50_000, "spawn from block_on"),
    ("detached-work-on-main-actor", 10_000, "the same, with work"),
];

async fn pass(row: &str, count: usize) {
    match row {
        "task-group-fan-out" => fan_out(count).await,
        "task-groups-of-thousand" => groups_of_thousand(count).await,
        "twenty-microsecond-tasks" => twenty_microsecond_tasks(count).await,
        "async-let" => async_let(count).await,
        "async-let-tree" => async_let_tree(count).await,
        "detached-task" | "detached-value-on-main-actor" => detached(count, Duration::ZERO).await,
        "detached-work-on-main-actor" => detached(count, Duration::from_micros(5)).await,
        "task-yield" => yields(count).await,
        "task-sleep-storm" => sleep_storm(count).await,
        "cancelled-tasks" => cancelled(count).await,
        "continuation-from-queue" => continuation(count).await,
        "contended-actor-2" => contended_actor(2, count).await,
        "contended-actor-8" => contended_actor(8, count).await,
        "contended-actor-64" => contended_actor(64, count).await,
        "async-stream" => stream(count).await,
        _ => verify(0, 1, "the row exists"),
    }
}

/// The quickest of three passes after a warm-up pass of a tenth.
async fn measure(row: &str, count: usize) -> f64 {
    pass(row, (count / 10).max(1)).await;
    let mut quickest = Duration::MAX;
    for _ in 0..3 {
        let start = Instant::now();
        pass(row, count).await;
        quickest = quickest.min(start.elapsed());
    }
    quickest.as_nanos() as f64 / count as f64
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let (mut wanted, mut divisor) = (None, 1);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--list" => return ROWS.iter().for_each(|(row, _, question)| println!("{row}\tns\t{question}")),
            "--quick" => divisor = 10,
            "--row" => wanted = arguments.next(),
            _ => {}
        }
    }
    let row = ROWS.iter().find(|row| wanted.as_deref() == Some(row.0));
    let (name, count, _) = *row.unwrap_or_else(|| {
        eprintln!("usage: --list | --row NAME [--quick]");
        std::process::exit(64);
    });
    let count = count / divisor;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_time().build().unwrap();
    // The future that block_on runs stays on the main thread, as the main actor does.
    let value = if name.ends_with("on-main-actor") {
        runtime.block_on(measure(name, count))
    } else {
        runtime.block_on(async move { spawn(measure(name, count)).await.unwrap() })
    };
    println!("{name} {value} {count} {count}");
}
