//! peer-kube-rs watches the pods of spec/bench/server with kube-rs, for scripts/bench.
//!
//!     peer-kube-rs KUBECONFIG [controller]
//!
//! It prints the lines of JSON that the peer of client-go prints; nothing is collected after the sync, since there is no
//! garbage collector. It ends when stdin does.
use std::io::Read;
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use futures::{Stream, StreamExt, TryStreamExt};
use k8s_openapi::api::core::v1::Pod;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::runtime::controller::{Action, Controller};
use kube::runtime::reflector::{self, ObjectRef};
use kube::runtime::watcher::{self, Event};
use kube::runtime::{WatchStreamExt, watcher as watch};
use kube::{Api, Client, Config, ResourceExt};

type Failure = Box<dyn std::error::Error>;

/// What came since the mark before.
#[derive(Default)]
struct Tally {
    events: usize,
    last: u128,
    latencies: Vec<f64>,
    synced: bool,
}

impl Tally {
    fn count(&mut self) {
        self.events += 1;
        self.last = now();
    }

    fn sync(&mut self, objects: usize) {
        if !self.synced {
            self.synced = true;
            say(serde_json::json!({"synced": objects}));
            say(serde_json::json!({"settled": true}));
        }
    }

    fn report(&mut self) {
        self.latencies.sort_by(f64::total_cmp);
        let n = self.latencies.len();
        let percentiles = match n {
            0 => vec![],
            _ => vec![self.latencies[n / 2], self.latencies[n * 99 / 100]],
        };
        say(serde_json::json!({
            "events": self.events, "last": self.last.to_string(), "latencies": percentiles,
        }));
        *self = Tally { synced: self.synced, ..Tally::default() };
    }
}

fn now() -> u128 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos()
}

fn say(what: serde_json::Value) {
    println!("{what}");
}

#[tokio::main]
async fn main() -> Result<(), Failure> {
    std::thread::spawn(|| {
        let _ = std::io::stdin().read_to_end(&mut Vec::new());
        std::process::exit(0);
    });
    let arguments: Vec<String> = std::env::args().collect();
    let kubeconfig = Kubeconfig::read_from(&arguments[1])?;
    let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await?;
    let pods = Api::<Pod>::all(Client::try_from(config)?);
    match arguments.get(2).map(String::as_str) {
        Some("controller") => control(pods).await,
        _ => follow(pods).await,
    }
}

fn stripped(pods: Api<Pod>) -> impl Stream<Item = watcher::Result<Event<Pod>>> + Send {
    watch(pods, watcher::Config::default()).default_backoff().modify(|pod| pod.managed_fields_mut().clear())
}

async fn follow(pods: Api<Pod>) -> Result<(), Failure> {
    let (store, writer) = reflector::store();
    let mut events = std::pin::pin!(stripped(pods).reflect(writer));
    let mut tally = Tally::default();
    while let Some(event) = events.try_next().await? {
        match event {
            Event::InitDone => tally.sync(store.state().len()),
            Event::Apply(pod) => on_update(&pod, &mut tally),
            _ => {}
        }
    }
    Ok(())
}

fn on_update(pod: &Pod, tally: &mut Tally) {
    let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
    if phase == Some("Unknown") {
        tally.report();
        return;
    }
    tally.count();
    let sent: u128 = pod.annotations()["bench/sent"].parse().unwrap();
    tally.latencies.push(tally.last.saturating_sub(sent) as f64 / 1e6);
}

/// No key is reconciled before the cache has filled.
async fn control(pods: Api<Pod>) -> Result<(), Failure> {
    let tally = Arc::new(Mutex::new(Tally::default()));
    let (store, writer) = reflector::store();
    let controller = Controller::for_stream(stripped(pods).reflect(writer).touched_objects(), store);
    controller.run(reconcile, on_error, tally).for_each(|_: Result<(ObjectRef<Pod>, Action), _>| async {}).await;
    Ok(())
}

async fn reconcile(pod: Arc<Pod>, tally: Arc<Mutex<Tally>>) -> Result<Action, std::convert::Infallible> {
    let mut tally = tally.lock().unwrap();
    tally.sync(0);
    match pod.name_any().as_str() {
        "mark" => tally.report(),
        _ => tally.count(),
    }
    Ok(Action::await_change())
}

fn on_error(_: Arc<Pod>, _: &std::convert::Infallible, _: Arc<Mutex<Tally>>) -> Action {
    Action::requeue(Duration::from_secs(1))
}
